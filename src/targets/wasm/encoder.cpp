#include "targets/wasm/encoder.hpp"

#include <algorithm>
#include <iterator>

#include "targets/wasm/shrink.hpp"

namespace trireme::wasm {
namespace {

class Bytes {
 public:
  std::vector<std::uint8_t> data;

  void byte(std::uint64_t value) { data.push_back(static_cast<std::uint8_t>(value)); }
  void type(Type type) { byte(static_cast<std::uint8_t>(type)); }
  void little_endian(std::uint64_t value, int count) {
    for (int k = 0; k < count; ++k) byte(value >> (8 * k));
  }
  void u32(std::uint64_t value) {  // LEB128
    for (; value >= 0x80; value >>= 7) byte((value & 0x7f) | 0x80);
    byte(value);
  }
  void s64(std::int64_t value) {  // signed LEB128: ends once the last bit written repeats in all that is left
    for (; value < -64 || value > 63; value >>= 7) byte((static_cast<std::uint64_t>(value) & 0x7f) | 0x80);
    byte(static_cast<std::uint64_t>(value) & 0x7f);
  }
  void sized(std::span<const std::uint8_t> bytes) {
    u32(bytes.size());
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  void counted(std::size_t count, const Bytes& entries) {
    u32(count);
    data.insert(data.end(), entries.data.begin(), entries.data.end());
  }
  void string(std::string_view text) { sized({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}); }
  void section(std::uint8_t id, const Bytes& content) { byte(id), sized(content.data); }
  void opcode(const Instruction& instruction) {
    if (instruction.prefix() == 0) return byte(instruction.number());
    byte(instruction.prefix());
    u32(instruction.number());
  }
  void i32_const(std::int32_t value) { opcode(*find("i32.const", Immediate::Const)), s64(value); }
  void end() { opcode(*find("end", Immediate::End)); }
};

void write_const(Bytes& out, const Body::Item& item) {
  switch (item.instruction->signature.back()) {
    case 'i': return out.s64(static_cast<std::int32_t>(item.a));
    case 'l': return out.s64(static_cast<std::int64_t>(item.a));
    case 'f': return out.little_endian(item.a, 4);
    case 'd': return out.little_endian(item.a, 8);
    case 'v': return out.little_endian(item.a, 8), out.little_endian(item.b, 8);
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const Body& body) {
  Bytes out, runs;
  std::uint32_t run_count = 0;
  for (std::size_t k = body.signature.parameters.size(), next; k < body.locals.size(); k = next, ++run_count) {
    for (next = k; next < body.locals.size() && body.locals[next].type == body.locals[k].type;) ++next;
    runs.u32(next - k), runs.type(body.locals[k].type);
  }
  out.counted(run_count, runs);

  std::vector<std::uint64_t> open;  // labels; a branch counts them from the innermost, which is 0
  for (const Body::Item& item : body.items) {
    out.opcode(*item.instruction);
    switch (item.instruction->immediate) {
      case Immediate::None: out.little_endian(0, item.instruction->argument); break;
      case Immediate::Memory:
      case Immediate::MemoryLane:
        out.u32(item.b & 0xff), out.u32(item.a);
        if (item.instruction->immediate == Immediate::MemoryLane) out.byte(item.b >> 8);
        break;
      case Immediate::Lane: out.byte(item.a); break;
      case Immediate::Shuffle: out.little_endian(item.a, 8), out.little_endian(item.b, 8); break;
      case Immediate::Const: write_const(out, item); break;
      case Immediate::Local: out.u32(item.a); break;
      case Immediate::Global: out.u32(body.globals[item.a].index); break;
      case Immediate::Block: out.byte(item.b), open.push_back(item.a); break;
      case Immediate::Else:
      case Immediate::Return: break;
      case Immediate::End: open.pop_back(); break;
      case Immediate::Branch: out.u32(std::find(open.rbegin(), open.rend(), item.a) - open.rbegin()); break;
      case Immediate::Call: out.u32(body.callees[item.a].index); break;
    }
  }
  out.end();
  return std::move(out.data);
}

std::uint32_t Function::declare(Type type, std::string_view name, bool is_parameter) {
  const auto index = static_cast<std::uint32_t>(body_.locals.size());
  if (is_parameter) {
    if (body_.signature.parameters.size() != index) misuse_ = "parameter declared behind a local: " + std::string(name);
    body_.signature.parameters.push_back(type);
  }
  std::string unique(name);
  if (name.empty() || !names_.insert(unique).second) unique += "." + std::to_string(index);
  body_.locals.push_back({type, std::move(unique)});
  return index;
}

void Function::get(const Global& global) {
  push(find("global.get", Immediate::Global), body_.globals.size());
  body_.globals.push_back(global);
}

void Function::set(const Global& global) {
  push(find("global.set", Immediate::Global), body_.globals.size());
  body_.globals.push_back(global);
}

void Function::shuffle(const std::array<std::uint8_t, 16>& lanes) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(lanes);
  push(find("i8x16.shuffle", Immediate::Shuffle), words[0], words[1]);
}

void Function::push_memory(const Instruction* instruction, MemArg at, std::uint8_t lane) {
  push(instruction, at.offset, at.align_log2.value_or(instruction->argument) | lane << 8);
}

void Function::call(const Callee& callee) {
  push(find("call", Immediate::Call), body_.callees.size());
  body_.callees.push_back(callee);
}

Label Function::open(Op<Immediate::Block> op, Type result) {
  push(op.instruction, labels_, static_cast<std::uint64_t>(result));
  return {labels_++};
}

void Function::else_(Label label) { push(find("else", Immediate::Else), label.id); }
void Function::end(Label label) { push(find("end", Immediate::End), label.id); }
void Function::br(Label label) { push(find("br", Immediate::Branch), label.id); }
void Function::br_if(Label label) { push(find("br_if", Immediate::Branch), label.id); }
void Function::ret() { push(find("return", Immediate::Return)); }

Result<Body> Function::finish() const {
  if (!misuse_.empty()) return Error{Code::Internal, "wasm function " + body_.name + ": " + misuse_};
  TRIREME_CHECK(check(body_));
  return body_;
}

Global Module::global(GlobalOptions options) {
  globals_.push_back(std::move(options));
  return {static_cast<std::uint32_t>(globals_.size() - 1), globals_.back().is_mutable, globals_.back().name};
}

Callee Module::add(Body body, std::string export_name) {
  functions_.push_back({compact_ ? shrink(std::move(body)) : std::move(body), std::move(export_name)});
  const Body& added = functions_.back().body;
  return {static_cast<std::uint32_t>(functions_.size() - 1), added.name, added.signature};
}

void Module::data(std::uint32_t offset, std::span<const std::uint8_t> bytes) {
  data_.push_back({offset, {bytes.begin(), bytes.end()}});
}

void Module::custom(std::string name, std::string content) {
  customs_.push_back({std::move(name), std::move(content)});
}

std::vector<std::uint8_t> Module::encode(bool with_names) const {
  std::vector<Signature> signatures;
  Bytes functions, types, memory, globals, exports, code, data, names;
  std::uint32_t export_count = 0;
  const auto add_export = [&](std::string_view name, std::uint8_t kind, std::size_t index) {
    if (name.empty()) return;
    exports.string(name), exports.byte(kind), exports.u32(index);
    ++export_count;
  };

  memory.u32(1), memory.byte(memory_.max_pages.has_value()), memory.u32(memory_.min_pages);
  if (memory_.max_pages) memory.u32(*memory_.max_pages);
  add_export(memory_.export_name, 2, 0);

  globals.u32(globals_.size());
  for (std::size_t k = 0; k < globals_.size(); ++k) {
    globals.type(Type::I32), globals.byte(globals_[k].is_mutable), globals.i32_const(globals_[k].value), globals.end();
    if (globals_[k].is_exported) add_export(globals_[k].name, 3, k);
  }

  functions.u32(functions_.size()), code.u32(functions_.size()), names.u32(functions_.size());
  for (std::size_t k = 0; k < functions_.size(); ++k) {
    const Body& body = functions_[k].body;
    const auto found = std::ranges::find(signatures, body.signature);
    functions.u32(found - signatures.begin());
    if (found == signatures.end()) signatures.push_back(body.signature);
    code.sized(wasm::encode(body));
    names.u32(k), names.string(body.name);
    add_export(functions_[k].export_name, 0, k);
  }

  types.u32(signatures.size());
  for (const Signature& signature : signatures) {
    types.byte(0x60), types.u32(signature.parameters.size());
    for (Type parameter : signature.parameters) types.type(parameter);
    types.u32(signature.result != Type::None);
    if (signature.result != Type::None) types.type(signature.result);
  }

  data.u32(data_.size());
  for (const Segment& segment : data_) {
    data.u32(0), data.i32_const(static_cast<std::int32_t>(segment.offset)), data.end(), data.sized(segment.bytes);
  }

  Bytes out, exports_section;
  exports_section.counted(export_count, exports);
  out.data = {0x00, 'a', 's', 'm', 0x01, 0x00, 0x00, 0x00};
  if (!functions_.empty()) out.section(1, types), out.section(3, functions);
  out.section(5, memory);
  if (!globals_.empty()) out.section(6, globals);
  if (export_count > 0) out.section(7, exports_section);
  if (!functions_.empty()) out.section(10, code);
  if (!data_.empty()) out.section(11, data);
  for (const Custom& each : customs_) {
    Bytes custom;
    custom.string(each.name);
    custom.data.insert(custom.data.end(), each.content.begin(), each.content.end());
    out.section(0, custom);
  }
  if (with_names) {
    Bytes custom;
    custom.string("name"), custom.section(1, names);
    out.section(0, custom);
  }
  return std::move(out.data);
}

}  // namespace trireme::wasm
