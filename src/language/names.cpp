#include "language/names.hpp"

#include "math/functions.hpp"

namespace trireme {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

CallForm form_of(Op op) {
  if (op == Op::Cast || op == Op::Largest) return CallForm::WithSymbol;
  if (op == Op::BitsShiftLeft || op == Op::BitsShiftRight) return CallForm::WithCount;
  if (op == Op::RoundTo) return CallForm::WithType;
  if (op == Op::Rotate) return CallForm::WithConstant;
  if (op == Op::ColumnSum) return CallForm::ColumnSum;
  return CallForm::Expressions;
}

// Leaves have names in op_facts too, but are not written as calls; operators are not spelled with letters.
bool is_called(const OpFacts& fact) {
  bool leaf = fact.op <= Op::ColumnCount;
  return !leaf && fact.op != Op::Call && is_letter(fact.name[0]);
}

}  // namespace

std::optional<Callable> callable_named(std::string_view name) {
  for (const OpFacts& fact : op_facts)
    if (is_called(fact) && fact.name == name) return Callable{fact.op, 0, fact.arity, form_of(fact.op)};
  if (auto index = function_named(name))
    return Callable{Op::Call, static_cast<std::int64_t>(*index), functions()[*index].arity, CallForm::Expressions};
  return std::nullopt;
}

std::vector<std::string_view> callable_names() {
  std::vector<std::string_view> names;
  for (const OpFacts& fact : op_facts)
    if (is_called(fact)) names.push_back(fact.name);
  for (const Function& function : functions()) names.push_back(function.name);
  return names;
}

bool is_word(std::string_view name) {
  for (std::string_view word : {"i", "j", "n", "inf", "nan"})
    if (name == word) return true;
  return false;
}

bool is_reserved(std::string_view name) { return is_word(name) || callable_named(name).has_value(); }

bool is_plain_name(std::string_view text) {
  if (text.empty() || text.size() > max_name_bytes || !is_letter(text[0])) return false;
  for (char c : text)
    if (!is_letter(c) && !(c >= '0' && c <= '9')) return false;
  return !is_reserved(text);
}

}  // namespace trireme
