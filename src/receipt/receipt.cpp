#include "receipt/receipt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/contract.hpp"
#include "language/parse.hpp"
#include "layout/elements.hpp"
#include "plan/digest.hpp"
#include "plan/resolve.hpp"
#include "receipt/json.hpp"
#include "support/float_types.hpp"
#include "support/hash.hpp"

namespace trireme::receipts {
namespace {

constexpr std::int64_t format_version = 1, most_blocks = 1024;

Error wrong(const std::string& what) { return {Code::InvalidArgument, "the receipt: " + what}; }

bool is_name(std::string_view text) {
  for (char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'))) return false;
  return !text.empty() && text.size() <= 1024 && !(text[0] >= '0' && text[0] <= '9');
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string text_digest(std::string_view text) { return hex(Hasher().add(text).value()); }

ArrayDigests digests_of(const std::string& name, const Buffer& buffer) {
  ArrayDigests made{name, buffer.array.type, buffer.row_extent, buffer.column_extent};
  const std::span<const std::byte> memory(buffer.memory.data(), static_cast<std::size_t>(made.rows * made.row_bytes()));
  made.digest = digest_rows(made, memory);
  const auto block_bytes = static_cast<std::size_t>(made.block() * made.row_bytes());
  for (std::size_t at = 0; at < memory.size(); at += block_bytes)
    made.leaves.push_back(digest_rows(made, memory.subspan(at, std::min(block_bytes, memory.size() - at))));
  made.root = root_of(made.leaves);
  return made;
}

Json json_of(const ArrayDigests& array) {
  List leaves;
  for (const std::string& each : array.leaves) leaves.push_back({each});
  return {Object{{"name", {array.name}},
                 {"type", {std::string(name(array.type))}},
                 {"rows", {array.rows}},
                 {"columns", {array.columns}},
                 {"digest", {array.digest}},
                 {"tree", {Object{{"block", {array.block()}}, {"leaves", {leaves}}, {"root", {array.root}}}}}}};
}

template <typename Names>
Json names_in(const Names& names) {
  List list;
  for (const std::string& each : names) list.push_back({each});
  return {list};
}

// The fields of one object: each is there, has the right kind, and no other is there.
class Fields {
 public:
  static Result<Fields> of(const Json& json, const std::string& where, std::initializer_list<const char*> names) {
    const Object* object = std::get_if<Object>(&json.value);
    if (!object) return wrong(where + " is an object");
    for (const char* name : names)
      if (!object->contains(name)) return wrong(fmt::format("{} has no '{}'", where, name));
    for (const auto& [name, value] : *object)
      if (std::find(names.begin(), names.end(), name) == names.end())
        return wrong(fmt::format("{} has a field '{}', which this version does not know", where, name));
    return Fields(*object, where);
  }
  const Json& json(const char* name) const { return object_->at(name); }
  template <typename T>
  Result<T> get(const char* name, const char* kind) const {
    const T* found = std::get_if<T>(&object_->at(name).value);
    if (!found) return wrong(fmt::format("'{}' of {} is {}", name, where_, kind));
    return *found;
  }
  Result<std::string> text(const char* name) const { return get<std::string>(name, "a text"); }
  Result<List> list(const char* name) const { return get<List>(name, "a list"); }
  Result<std::string> digest(const char* name) const {
    TRIREME_TRY(found, text(name));
    if (!is_hex(found, 32)) return wrong(fmt::format("'{}' of {} is 32 hex digits", name, where_));
    return found;
  }
  Result<std::int64_t> whole(const char* name, std::int64_t least, std::int64_t most) const {
    TRIREME_TRY(found, get<std::int64_t>(name, "a whole number"));
    if (found < least || found > most)
      return wrong(fmt::format("'{}' of {} is from {} to {}, not {}", name, where_, least, most, found));
    return found;
  }
  Result<Type> type(const char* name) const {
    TRIREME_TRY(found, text(name));
    const std::optional<Type> made = type_named(found);
    if (!made) return wrong(fmt::format("'{}' of {} is a storage type, not '{}'", name, where_, found));
    return *made;
  }
  Result<std::set<std::string>> names(const char* name) const {
    TRIREME_TRY(found, list(name));
    std::set<std::string> made;
    for (const Json& each : found) {
      const std::string* text = std::get_if<std::string>(&each.value);
      if (!text || !is_name(*text) || !made.insert(*text).second)
        return wrong(fmt::format("'{}' of {} lists names, each once", name, where_));
    }
    return made;
  }

 private:
  Fields(const Object& object, std::string where) : object_(&object), where_(std::move(where)) {}
  const Object* object_;
  std::string where_;
};

Result<std::vector<ArrayDigests>> arrays_in(const Fields& receipt, const char* which) {
  TRIREME_TRY(list, receipt.list(which));
  std::vector<ArrayDigests> made;
  for (const Json& each : list) {
    TRIREME_TRY(fields, Fields::of(each, fmt::format("an entry of '{}'", which),
                                   {"name", "type", "rows", "columns", "digest", "tree"}));
    TRIREME_TRY(name, fields.text("name"));
    if (!is_name(name)) return wrong("an array's name is a name");
    TRIREME_TRY(type, fields.type("type"));
    TRIREME_TRY(rows, fields.whole("rows", 0, max_whole));
    TRIREME_TRY(columns, fields.whole("columns", 1, max_whole));
    TRIREME_TRY(digest, fields.digest("digest"));
    ArrayDigests array{name, type, rows, columns, digest};
    if (rows > 0 && columns > (std::int64_t{1} << 56) / rows)
      return wrong(fmt::format("'{}' has more than 2^56 entries", name));
    TRIREME_TRY(tree, Fields::of(fields.json("tree"), "the tree of '" + name + "'", {"block", "leaves", "root"}));
    TRIREME_TRY(block, tree.whole("block", 1, max_whole));
    if (block != array.block())
      return wrong(
          fmt::format("'{}' has blocks of {} rows, and {} are right for {}", name, block, array.block(), rows));
    TRIREME_TRY(leaves, tree.list("leaves"));
    if (static_cast<std::int64_t>(leaves.size()) != array.blocks())
      return wrong(fmt::format("'{}' has {} leaves, and {} blocks", name, leaves.size(), array.blocks()));
    for (const Json& leaf : leaves) {
      const std::string* text = std::get_if<std::string>(&leaf.value);
      if (!text || !is_hex(*text, 32)) return wrong(fmt::format("a leaf of '{}' is 32 hex digits", name));
      array.leaves.push_back(*text);
    }
    TRIREME_TRY(root, tree.digest("root"));
    if (root != root_of(array.leaves)) return wrong(fmt::format("the root of '{}' is not that of its leaves", name));
    array.root = root;
    made.push_back(std::move(array));
  }
  return made;
}

}  // namespace

std::int64_t block_rows(std::int64_t rows) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((rows + most_blocks - 1) / most_blocks)));
}

std::string digest_rows(const ArrayDigests& array, std::span<const std::byte> rows) {
  const Array there{.data = const_cast<std::byte*>(rows.data()),  // read only
                    .type = array.type,
                    .row_stride = array.columns,
                    .column_stride = 1};
  const DigestPart part{in_bytes(there), static_cast<std::int64_t>(rows.size()) / array.row_bytes(),
                        columns_in_bytes(array.type, array.columns)};
  return digest(std::span(&part, 1));
}

std::string root_of(const std::vector<std::string>& leaves) {
  if (leaves.empty()) return hex(Hasher().value());
  std::vector<std::string> level = leaves;
  auto bytes_of = [](const std::string& digits) {
    std::string made;
    for (std::size_t k = 0; k < digits.size(); k += 2)
      made += static_cast<char>(std::stoi(digits.substr(k, 2), nullptr, 16));
    return made;
  };
  while (level.size() > 1) {
    std::vector<std::string> above;
    for (std::size_t k = 0; k + 1 < level.size(); k += 2)
      above.push_back(hex(Hasher().add(bytes_of(level[k]) + bytes_of(level[k + 1])).value()));
    if (level.size() % 2) above.push_back(level.back());
    level = std::move(above);
  }
  return level[0];
}

Result<Receipt> make_receipt(const Prepared& ran, std::string_view text) {
  Receipt receipt{.contract = contract::version,
                  .text = std::string(text),
                  .backward = ran.problem.backward,
                  .gradients = ran.problem.gradients,
                  .shape = ran.problem.shape,
                  .axes = ran.problem.axes,
                  .compute = *ran.bound.compute,
                  .absent = ran.problem.absent};
  if (!ran.problem.accumulate.empty() || ran.problem.row_block)
    return Error{Code::Unsupported, "a receipt says nothing of accumulated results, nor of row blocks"};
  if (!is_utf8(text)) return Error{Code::Unsupported, "a receipt holds the program's text, which is not UTF-8 here"};
  for (const Output& each : ran.source.results) receipt.absent.erase(each.name);
  for (const Operand& each : ran.source.operands) {
    if (!each.constant) continue;
    const auto said = ran.problem.constants.find(each.name);
    if (said != ran.problem.constants.end()) receipt.constants[each.name] = said->second;
    else if (each.fallback != no_node)
      if (const std::optional<double> number = as_number(ran.source, each.fallback))
        receipt.constants[each.name] = *number;
  }
  for (std::size_t k = 0; k < ran.bound.operands.size(); ++k)
    if (const Operand& each = ran.bound.operands[k]; !each.constant && each.type)
      receipt.operands.push_back(digests_of(each.name, ran.buffers.operands[k]));
  for (std::size_t k = 0; k < ran.bound.results.size(); ++k)
    receipt.results.push_back(digests_of(ran.bound.results[k].name, ran.buffers.results[k]));
  return receipt;
}

std::string print(const Receipt& receipt) {
  List shape, operands, results;
  for (std::int64_t each : receipt.shape) shape.push_back({each});
  for (const ArrayDigests& each : receipt.operands) operands.push_back(json_of(each));
  for (const ArrayDigests& each : receipt.results) results.push_back(json_of(each));
  Object constants;
  for (const auto& [name, value] : receipt.constants)
    constants[name] = {fmt::format("{:016x}", canonical_bits(Type::F64, std::bit_cast<std::uint64_t>(value)))};
  return canonical({Object{
      {"receipt", {format_version}},
      {"hash", {std::string("xxh3-128")}},
      {"contract", {static_cast<std::int64_t>(receipt.contract)}},
      {"program", {Object{{"text", {receipt.text}}, {"digest", {text_digest(receipt.text)}}}}},
      {"direction", {std::string(receipt.backward ? "backward" : "forward")}},
      {"gradients", names_in(receipt.gradients)},
      {"shape", {shape}},
      {"axes", {static_cast<std::int64_t>(receipt.axes)}},
      {"compute", {std::string(name(receipt.compute))}},
      {"constants", {constants}},
      {"absent", names_in(receipt.absent)},
      {"operands", {operands}},
      {"results", {results}},
  }});
}

Result<Receipt> parse_receipt(std::string_view text) {
  TRIREME_TRY(json, parse_json(text));
  TRIREME_TRY(fields, Fields::of(json, "it",
                                 {"receipt", "hash", "contract", "program", "direction", "gradients", "shape", "axes",
                                  "compute", "constants", "absent", "operands", "results"}));
  TRIREME_CHECK(fields.whole("receipt", format_version, format_version));
  TRIREME_TRY(hash, fields.text("hash"));
  if (hash != "xxh3-128") return wrong("digests by '" + hash + "'; this version knows xxh3-128");
  Receipt receipt;
  TRIREME_TRY(contract, fields.whole("contract", 0, 1 << 20));
  receipt.contract = static_cast<int>(contract);
  TRIREME_TRY(program, Fields::of(fields.json("program"), "'program'", {"text", "digest"}));
  TRIREME_TRY(program_text, program.text("text"));
  TRIREME_TRY(digest, program.digest("digest"));
  if (digest != text_digest(program_text)) return wrong("the program's digest is not that of its text");
  receipt.text = program_text;
  TRIREME_TRY(direction, fields.text("direction"));
  if (direction != "forward" && direction != "backward") return wrong("'direction' is forward or backward");
  receipt.backward = direction == "backward";
  TRIREME_TRY(gradients, fields.names("gradients"));
  receipt.gradients = gradients;
  if (!gradients.empty() && !receipt.backward) return wrong("gradients arrive in a backward");
  TRIREME_TRY(shape, fields.list("shape"));
  if (shape.empty() || shape.size() > max_rank) return wrong("a shape has 1 to 8 axes");
  for (const Json& each : shape) {
    const std::int64_t* extent = std::get_if<std::int64_t>(&each.value);
    if (!extent || *extent < 0) return wrong("a shape is a list of whole numbers from 0");
    receipt.shape.push_back(*extent);
  }
  TRIREME_TRY(axes, fields.whole("axes", 1, static_cast<std::int64_t>(shape.size())));
  receipt.axes = static_cast<int>(axes);
  TRIREME_TRY(compute, fields.type("compute"));
  receipt.compute = compute;
  TRIREME_TRY(constants, fields.get<Object>("constants", "an object"));
  for (const auto& [name, value] : constants) {
    const std::string* bits = std::get_if<std::string>(&value.value);
    if (!is_name(name) || !bits || !is_hex(*bits, 16))
      return wrong("a constant is the 16 hex digits of an f64, by its name");
    receipt.constants[name] = std::bit_cast<double>(static_cast<std::uint64_t>(std::stoull(*bits, nullptr, 16)));
  }
  TRIREME_TRY(absent, fields.names("absent"));
  receipt.absent = absent;
  TRIREME_TRY(operands, arrays_in(fields, "operands"));
  TRIREME_TRY(results, arrays_in(fields, "results"));
  if (results.empty()) return wrong("it has no results");
  receipt.operands = std::move(operands), receipt.results = std::move(results);
  return receipt;
}

Result<Prepared> layout_of(const Receipt& receipt) {
  if (receipt.contract != contract::version)
    return Error{Code::Unsupported, fmt::format("the receipt is of contract version {}, and this is version {}",
                                                receipt.contract, contract::version)};
  TRIREME_TRY(forward, parse(receipt.text));
  Problem problem{.program = forward.name,
                  .shape = receipt.shape,
                  .axes = receipt.axes,
                  .backward = receipt.backward,
                  .gradients = receipt.gradients,
                  .absent = receipt.absent,
                  .constants = receipt.constants};
  std::optional<Program> derived;
  if (problem.backward) {
    TRIREME_TRY(backward, backward_of(problem, forward));
    derived = std::move(backward);
  }
  const Program& program = derived ? *derived : forward;
  auto find = [](const std::vector<ArrayDigests>& list, const std::string& name) -> const ArrayDigests* {
    for (const ArrayDigests& each : list)
      if (each.name == name) return &each;
    return nullptr;
  };
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    const Program::Array array = program.array(k);
    if (!array.in_memory) continue;
    const ArrayDigests* said = find(array.result ? receipt.results : receipt.operands, array.name);
    if (!said) {
      if (array.result) problem.absent.insert(array.name);
      else if (!problem.absent.contains(array.name))
        return wrong(fmt::format("'{}' is neither an operand nor absent", array.name));
      continue;
    }
    problem.types[array.name] = said->type;
    if (array.spread.row.picked()) problem.placements[array.name].rows = said->rows;
  }
  TRIREME_CHECK(parse_problem(trireme::print(problem)));  // the limits of shapes
  TRIREME_TRY(prepared, prepare_problem(problem, receipt.text, Fill::NoMemory));
  std::size_t operands = 0, results = 0;
  for (std::size_t k = 0; k < prepared.bound.array_count(); ++k) {
    const Program::Array array = prepared.bound.array(k);
    if (!array.in_memory || !array.type) continue;
    const std::vector<ArrayDigests>& list = array.result ? receipt.results : receipt.operands;
    std::size_t& at = array.result ? results : operands;
    const Buffer& buffer = prepared.buffer(k);
    if (at == list.size() || list[at].name != array.name || list[at].rows != buffer.row_extent ||
        list[at].columns != buffer.column_extent)
      return wrong(fmt::format("its arrays are not those of its program: {} should have {} rows of {} columns here",
                               array.name, buffer.row_extent, buffer.column_extent));
    ++at;
  }
  if (operands != receipt.operands.size() || results != receipt.results.size())
    return wrong("it lists arrays that its program does not have");
  if (prepared.bound.compute != receipt.compute) return wrong("the compute type is not that of its arrays' types");
  return std::move(prepared);
}

}  // namespace trireme::receipts
