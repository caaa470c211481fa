#include "receipt/receipt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/contract.hpp"
#include "language/parse.hpp"
#include "layout/elements.hpp"
#include "problem/digest.hpp"
#include "problem/resolve.hpp"
#include "support/float_types.hpp"
#include "support/hash.hpp"
#include "support/json.hpp"

namespace trireme::receipts {
namespace {

using json::Json, json::List, json::Object, json::max_whole;

constexpr std::int64_t format_version = 1;

Error wrong(const std::string& what) { return {Code::InvalidArgument, "the receipt: " + what}; }

bool is_name(std::string_view text) {
  for (char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'))) return false;
  return !text.empty() && text.size() <= 1024 && !(text[0] >= '0' && text[0] <= '9');
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// A bound text is a printout of the compiler's, with forms that the contract does not know.
Status check_program(const Program& program) {
  if (!program.compute) return Done{};
  return Error{Code::Unsupported,
               fmt::format("a receipt holds a program of the contract, and '{}' is bound ('in {}' behind its results): "
                           "give the text that it was bound from",
                           program.name, name(*program.compute))};
}

std::string text_digest(Hash hash, std::string_view text) { return digest_of(hash, text.data(), text.size()); }

Json json_of(const ArrayDigests& array) {
  List leaves;
  for (const std::string& each : array.leaves) leaves.push_back({each});
  return {Object{{"name", {array.name}},
                 {"type", {std::string(name(array.type))}},
                 {"rows", {array.rows}},
                 {"columns", {array.columns}},
                 {"block", {array.block()}},
                 {"digest", {array.digest}},
                 {"leaves", {leaves}}}};
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
  static Result<Fields> of(const Json& json, const std::string& where, std::initializer_list<const char*> names,
                           std::string_view optional = {}) {
    const Object* object = std::get_if<Object>(&json.value);
    if (!object) return wrong(where + " is an object");
    for (const char* name : names)
      if (!object->contains(name)) return wrong(fmt::format("{} has no '{}'", where, name));
    for (const auto& [name, value] : *object)
      if (name != optional && std::find(names.begin(), names.end(), name) == names.end())
        return wrong(fmt::format("{} has a field '{}', which this version does not know", where, name));
    return Fields(*object, where);
  }
  bool has(const char* name) const { return object_->contains(name); }
  const Json& json(const char* name) const { return object_->at(name); }
  template <typename T>
  Result<T> get(const char* name, const char* kind) const {
    const T* found = std::get_if<T>(&object_->at(name).value);
    if (!found) return wrong(fmt::format("'{}' of {} is {}", name, where_, kind));
    return *found;
  }
  Result<std::string> text(const char* name) const { return get<std::string>(name, "a text"); }
  Result<List> list(const char* name) const { return get<List>(name, "a list"); }
  Result<std::string> hex(const char* name, std::size_t digits) const {
    TRIREME_TRY(found, text(name));
    if (!is_hex(found, digits)) return wrong(fmt::format("'{}' of {} is {} hex digits", name, where_, digits));
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

Result<std::vector<ArrayDigests>> arrays_in(const Fields& receipt, const char* which, Hash hash) {
  TRIREME_TRY(list, receipt.list(which));
  std::vector<ArrayDigests> made;
  for (const Json& each : list) {
    TRIREME_TRY(fields, Fields::of(each, fmt::format("an entry of '{}'", which),
                                   {"name", "type", "rows", "columns", "block", "digest", "leaves"}));
    TRIREME_TRY(name, fields.text("name"));
    if (!is_name(name)) return wrong("an array's name is a name");
    TRIREME_TRY(type, fields.type("type"));
    TRIREME_TRY(rows, fields.whole("rows", 0, max_whole));
    TRIREME_TRY(columns, fields.whole("columns", 1, max_whole));
    TRIREME_TRY(digest, fields.hex("digest", digits(hash)));
    ArrayDigests array{name, type, rows, columns, digest};
    if (rows > 0 && columns > (std::int64_t{1} << 56) / rows)
      return wrong(fmt::format("'{}' has more than 2^56 entries", name));
    TRIREME_TRY(block, fields.whole("block", 1, max_whole));
    if (block != array.block())
      return wrong(
          fmt::format("'{}' has blocks of {} rows, and {} are right for {}", name, block, array.block(), rows));
    TRIREME_TRY(leaves, fields.list("leaves"));
    if (static_cast<std::int64_t>(leaves.size()) != array.blocks())
      return wrong(fmt::format("'{}' has {} leaves, and {} blocks", name, leaves.size(), array.blocks()));
    for (const Json& leaf : leaves) {
      const std::string* text = std::get_if<std::string>(&leaf.value);
      if (!text || !is_hex(*text, digits(hash)))
        return wrong(fmt::format("a leaf of '{}' is {} hex digits", name, digits(hash)));
      array.leaves.push_back(*text);
    }
    if (digest != root_of(hash, array.leaves))
      return wrong(fmt::format("the digest of '{}' is not that of its leaves", name));
    made.push_back(std::move(array));
  }
  return made;
}

}  // namespace

Result<Receipt> make_receipt(const Prepared& laid, std::string_view text, Hash hash,
                             const std::function<Result<ReadRows>(std::size_t array)>& rows_of_array) {
  Receipt receipt{.hash = hash,
                  .contract = contract::version,
                  .text = std::string(text),
                  .backward = laid.problem.backward,
                  .gradients = laid.problem.gradients,
                  .shape = laid.problem.shape,
                  .axes = laid.problem.axes,
                  .compute = *laid.bound.compute,
                  .absent = laid.problem.absent};
  TRIREME_TRY(forward, parse(text));
  TRIREME_CHECK(check_program(forward));
  if (!laid.problem.accumulate.empty() || laid.problem.row_block)
    return Error{Code::Unsupported, "a receipt says nothing of accumulated results, nor of row blocks"};
  for (NodeId id = 0; id < laid.source.size(); ++id)
    if (laid.source[id].op == Op::Largest && laid.problem.absent.contains(laid.source.symbols[laid.source[id].payload]))
      return Error{Code::Unsupported,
                   "a receipt says nothing of the types of what is absent, and the program asks for that of '" +
                       laid.source.symbols[laid.source[id].payload] + "'"};
  if (!json::is_utf8(text))
    return Error{Code::Unsupported, "a receipt holds the program's text, which is not UTF-8 here"};
  for (const Output& each : laid.source.results) receipt.absent.erase(each.name);
  for (const Operand& each : laid.source.operands) {
    if (!each.constant) continue;
    const auto said = laid.problem.constants.find(each.name);
    if (said != laid.problem.constants.end()) receipt.constants[each.name] = said->second;
    else if (each.fallback != no_node)
      if (const std::optional<double> number = as_number(laid.source, each.fallback))
        receipt.constants[each.name] = *number;
  }
  for (std::size_t k = 0; k < laid.bound.array_count(); ++k) {
    const Program::Array array = laid.bound.array(k);
    if (!array.in_memory || !array.type) continue;
    const Buffer& buffer = laid.buffer(k);
    ArrayDigests digests{array.name, *array.type, buffer.row_extent, buffer.column_extent};
    TRIREME_TRY(read, rows_of_array(k));
    TRIREME_CHECK(take_digests(hash, digests, read));
    (array.result ? receipt.results : receipt.operands).push_back(std::move(digests));
  }
  return receipt;
}

Status check_signature(const Receipt& receipt) {
  const Signature& signature = *receipt.signature;
  if (receipt.hash != Hash::Sha256)
    return wrong("one that is signed has digests by sha256: XXH3 is no cryptographic hash");
  if (!is_hex(signature.key, 64)) return wrong("the key of a signature is 64 hex digits");
  if (!is_hex(signature.value, 128)) return wrong("the value of a signature is 128 hex digits");
  return Done{};
}

namespace {

std::string printed(const Receipt& receipt, bool with_signature) {
  List shape, operands, results;
  for (std::int64_t each : receipt.shape) shape.push_back({each});
  for (const ArrayDigests& each : receipt.operands) operands.push_back(json_of(each));
  for (const ArrayDigests& each : receipt.results) results.push_back(json_of(each));
  Object constants;
  for (const auto& [name, value] : receipt.constants)
    constants[name] = {fmt::format("{:016x}", canonical_bits(Type::F64, std::bit_cast<std::uint64_t>(value)))};
  Object fields{
      {"receipt", {format_version}},
      {"hash", {std::string(name(receipt.hash))}},
      {"contract", {static_cast<std::int64_t>(receipt.contract)}},
      {"program", {Object{{"text", {receipt.text}}, {"digest", {text_digest(receipt.hash, receipt.text)}}}}},
      {"direction", {std::string(receipt.backward ? "backward" : "forward")}},
      {"gradients", names_in(receipt.gradients)},
      {"shape", {shape}},
      {"axes", {static_cast<std::int64_t>(receipt.axes)}},
      {"compute", {std::string(name(receipt.compute))}},
      {"constants", {constants}},
      {"absent", names_in(receipt.absent)},
      {"operands", {operands}},
      {"results", {results}},
  };
  if (with_signature && receipt.signature)
    fields["signature"].value = Object{{"algorithm", {std::string("ed25519")}},
                                       {"key", {receipt.signature->key}},
                                       {"value", {receipt.signature->value}}};
  Json whole;
  whole.value.emplace<Object>(std::move(fields));
  return json::canonical(whole);
}

}  // namespace

std::string print(const Receipt& receipt) { return printed(receipt, true); }
std::string signed_form(const Receipt& receipt) { return printed(receipt, false); }

Result<Receipt> parse_receipt(std::string_view text) {
  TRIREME_TRY(parsed, json::parse(text));
  TRIREME_TRY(fields, Fields::of(parsed, "it",
                                 {"receipt", "hash", "contract", "program", "direction", "gradients", "shape", "axes",
                                  "compute", "constants", "absent", "operands", "results"},
                                 "signature"));
  TRIREME_CHECK(fields.whole("receipt", format_version, format_version));
  Receipt receipt;
  TRIREME_TRY(hash_name, fields.text("hash"));
  const Result<Hash> hash = hash_named(hash_name);
  if (!hash) return wrong(hash.error().message);
  receipt.hash = *hash;
  TRIREME_TRY(contract, fields.whole("contract", 0, 1 << 20));
  receipt.contract = static_cast<int>(contract);
  TRIREME_TRY(program, Fields::of(fields.json("program"), "'program'", {"text", "digest"}));
  TRIREME_TRY(program_text, program.text("text"));
  TRIREME_TRY(digest, program.hex("digest", digits(*hash)));
  if (digest != text_digest(*hash, program_text)) return wrong("the program's digest is not that of its text");
  receipt.text = program_text;
  if (const Result<Program> read = parse(program_text)) TRIREME_CHECK(check_program(*read));
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
  TRIREME_TRY(operands, arrays_in(fields, "operands", *hash));
  TRIREME_TRY(results, arrays_in(fields, "results", *hash));
  if (results.empty()) return wrong("it has no results");
  receipt.operands = std::move(operands), receipt.results = std::move(results);
  if (fields.has("signature")) {
    TRIREME_TRY(signature, Fields::of(fields.json("signature"), "'signature'", {"algorithm", "key", "value"}));
    TRIREME_TRY(algorithm, signature.text("algorithm"));
    if (algorithm != "ed25519") return wrong("a signature by '" + algorithm + "'; this version knows ed25519");
    TRIREME_TRY(key, signature.text("key"));
    TRIREME_TRY(value, signature.text("value"));
    receipt.signature = Signature{key, value};
    TRIREME_CHECK(check_signature(receipt));
  }
  return receipt;
}

Result<Prepared> layout_of(const Receipt& receipt) {
  if (receipt.contract != contract::version)
    return Error{Code::Unsupported, fmt::format("the receipt is of contract version {}, and this is version {}",
                                                receipt.contract, contract::version)};
  TRIREME_TRY(forward, parse(receipt.text));
  TRIREME_CHECK(check_program(forward));
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
