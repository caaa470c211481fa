#include "language/names.hpp"

#include <algorithm>
#include <iterator>

#include "math/functions.hpp"
#include "math/reductions.hpp"

namespace trireme {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

CallForm form_of(Op op) {
  if (names_symbol(op)) return CallForm::WithSymbol;
  if (op == Op::BitsShiftLeft || op == Op::BitsShiftRight) return CallForm::WithCount;
  if (op == Op::RoundTo) return CallForm::WithType;
  if (op == Op::Random) return CallForm::WithStream;
  if (op == Op::Rotate) return CallForm::WithConstant;
  if (is_column_reduction(op)) return CallForm::WholeResult;
  return CallForm::Expressions;
}

// Leaves have names in op_facts too, but are not written as calls; operators are not spelled with letters.
bool is_called(const OpFacts& fact) {
  bool leaf = fact.op <= Op::ColumnCount;
  bool of_a_table = fact.op == Op::Call || fact.op == Op::Group || fact.op == Op::Fold || fact.op == Op::Reduce ||
                    fact.op == Op::ReduceSpread;
  return !leaf && !of_a_table && is_letter(fact.name[0]);
}

}  // namespace

std::optional<Callable> callable_named(std::string_view name) {
  for (const OpFacts& fact : op_facts)
    if (is_called(fact) && fact.name == name) return Callable{fact.op, 0, fact.arity, form_of(fact.op)};
  if (auto index = function_named(name))
    return Callable{Op::Call, static_cast<std::int64_t>(*index), functions()[*index].arity, CallForm::Expressions};
  if (auto index = reduction_named(name))
    return Callable{reductions()[*index].op, static_cast<std::int64_t>(*index), 1, CallForm::Expressions};
  if (auto total = total_named(name))
    return Callable{Op::Fold, *total, fold_of(folds(), *total).arity(), CallForm::Expressions};
  return std::nullopt;
}

std::vector<std::string_view> callable_names() {
  std::vector<std::string_view> names;
  for (const OpFacts& fact : op_facts)
    if (is_called(fact)) names.push_back(fact.name);
  for (const Function& function : functions()) names.push_back(function.name);
  for (const Reduction& reduction : reductions()) names.push_back(reduction.name);
  return names;
}

bool is_word(std::string_view name) { return std::find(std::begin(words), std::end(words), name) != std::end(words); }

// Composed reductions came later than programs that have a value called `variance`: those names stay free.
bool is_reserved(std::string_view name) {
  if (is_word(name)) return true;
  std::optional<Callable> callable = callable_named(name);
  return callable && callable->op != Op::Reduce && callable->op != Op::ReduceSpread && callable->op != Op::Fold;
}

bool is_plain_name(std::string_view text) {
  if (text.empty() || text.size() > max_name_bytes || !is_letter(text[0])) return false;
  for (char c : text)
    if (!is_letter(c) && !(c >= '0' && c <= '9')) return false;
  return !is_reserved(text);
}

}  // namespace trireme
