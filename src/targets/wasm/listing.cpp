// Prints bodies and modules in the WebAssembly text format. An assembler makes the encoder's bytes of it.
#include <fmt/format.h>

#include <cmath>

#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {
namespace {

// The shortest decimal that reads back as the same bits; a NaN with its payload.
template <typename Float, typename Bits>
std::string exact(Bits bits, int mantissa_bits) {
  const Float value = std::bit_cast<Float>(bits);
  if (!std::isnan(value)) return fmt::format("{}", value);
  return fmt::format("{}nan:0x{:x}", std::signbit(value) ? "-" : "", bits & ((Bits{1} << mantissa_bits) - 1));
}

std::string constant(const Body::Item& item) {
  const auto low = static_cast<std::uint32_t>(item.a);
  switch (item.instruction->signature.back()) {
    case 'i': return fmt::format(" {}", static_cast<std::int32_t>(low));
    case 'l': return fmt::format(" {}", static_cast<std::int64_t>(item.a));
    case 'f': return " " + exact<float>(low, 23);
    case 'd': return " " + exact<double>(item.a, 52);
  }
  return fmt::format(" i32x4 0x{:08x} 0x{:08x} 0x{:08x} 0x{:08x}", low, item.a >> 32,
                     static_cast<std::uint32_t>(item.b), item.b >> 32);
}

std::string immediate(const Body& body, const Body::Item& item) {
  const Instruction& instruction = *item.instruction;
  std::string out;
  switch (instruction.immediate) {
    case Immediate::None:
    case Immediate::Return:
    case Immediate::Else:
    case Immediate::End: return out;
    case Immediate::Memory:
    case Immediate::MemoryLane:
      if (item.a != 0) out += fmt::format(" offset={}", item.a);
      if ((item.b & 0xff) != instruction.argument) out += fmt::format(" align={}", 1 << (item.b & 0xff));
      if (instruction.immediate == Immediate::MemoryLane) out += fmt::format(" {}", item.b >> 8);
      return out;
    case Immediate::Lane: return fmt::format(" {}", item.a);
    case Immediate::Shuffle:
      for (int k = 0; k < 16; ++k) out += fmt::format(" {}", (k < 8 ? item.a : item.b) >> (k % 8 * 8) & 0xff);
      return out;
    case Immediate::Const: return constant(item);
    case Immediate::Local: return " $" + body.locals[item.a].name;
    case Immediate::Global: return " $" + body.globals[item.a].name;
    case Immediate::Block:
      out = fmt::format(" ${}", item.a);
      if (const Type result = static_cast<Type>(item.b); result != Type::None)
        out += fmt::format(" (result {})", name(result));
      return out;
    case Immediate::Branch: return fmt::format(" ${}", item.a);
    case Immediate::Call: return " $" + body.callees[item.a].name;
  }
  return out;
}

std::string quoted_export(std::string_view name) { return name.empty() ? "" : fmt::format(" (export \"{}\")", name); }

}  // namespace

std::string_view name(Type type) {
  switch (type) {
    case Type::None: return "any value";
    case Type::V128: return "v128";
    case Type::F64: return "f64";
    case Type::F32: return "f32";
    case Type::I64: return "i64";
    case Type::I32: return "i32";
  }
  return "";
}

std::string text(const Body& body, std::string_view export_name) {
  std::string out = fmt::format("(func ${}{}", body.name, quoted_export(export_name));
  const std::size_t parameters = body.signature.parameters.size();
  const auto declare = [&](std::string_view keyword, const Body::Variable& variable) {
    out += fmt::format("({} ${} {})", keyword, variable.name, name(variable.type));
  };
  for (std::size_t k = 0; k < parameters; ++k) out += " ", declare("param", body.locals[k]);
  if (body.signature.result != Type::None) out += fmt::format(" (result {})", name(body.signature.result));
  for (std::size_t k = parameters; k < body.locals.size(); ++k) out += "\n  ", declare("local", body.locals[k]);
  std::size_t depth = 1;
  auto comment = body.comments.begin();
  for (const Body::Item& item : body.items) {
    for (; comment != body.comments.end() && comment->first == static_cast<std::size_t>(&item - body.items.data());
         ++comment)
      out += fmt::format("\n{:{}};; {}", "", 2 * depth, comment->second);
    const Immediate kind = item.instruction->immediate;
    if (kind == Immediate::Else || kind == Immediate::End) --depth;
    out += '\n';
    out.append(2 * depth, ' ') += item.instruction->name;
    out += immediate(body, item);
    if (kind == Immediate::Else || kind == Immediate::Block) ++depth;
  }
  return out + ")\n";
}

std::string Module::text() const {
  std::string out = fmt::format("(module\n(memory{} {}", quoted_export(memory_.export_name), memory_.min_pages);
  if (memory_.max_pages) out += fmt::format(" {}", *memory_.max_pages);
  out += ")\n";
  for (const GlobalOptions& global : globals_) {
    out += fmt::format("(global ${}{} {} (i32.const {}))\n", global.name,
                       quoted_export(global.is_exported ? global.name : ""), global.is_mutable ? "(mut i32)" : "i32",
                       global.value);
  }
  for (const Entry& entry : functions_) out += wasm::text(entry.body, entry.export_name);
  for (const Segment& segment : data_) {
    out += fmt::format("(data (i32.const {}) \"", static_cast<std::int32_t>(segment.offset));
    for (std::uint8_t byte : segment.bytes) out += fmt::format("\\{:02x}", byte);
    out += "\")\n";
  }
  return out + ")\n";
}

}  // namespace trireme::wasm
