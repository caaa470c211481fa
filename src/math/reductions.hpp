// Reductions of a row that are more than one sum: variance, logsumexp, softmax. Each is one record. To add a reduction,
// add a record, and its fold if no other has it.
//
// A fold makes two totals of a row in one sweep. In each stripe of the contract's row sum the first total is a sum or a
// maximum of the elements, the second the sum of terms that know the first; then stripes merge in neighbouring pairs,
// the left one first, an odd last one moving up unchanged. So the bits depend on the columns alone, and threads that
// share a row meet once.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/build.hpp"

namespace trireme {

using Totals = std::array<Formula, 2>;

struct Fold {
  std::array<std::string_view, 2> names;  // of its totals, as programs after `expand` call them
  Op first;                               // of the elements of a stripe: Sum or Amax
  // What the second total sums up; `count` is the stripe's number of columns.
  Formula (*term)(Formula element, Formula first, Formula count);
  // Of two neighbours, with their numbers of columns; the left one is full: 256 columns, or 512, 1024, ...
  Totals (*merge)(const Totals& left, const Totals& right, Formula left_count, Formula right_count);
  // The second total sums up terms times another element, its weight: the fold has two arguments. For merges that are
  // linear in the second totals.
  bool weighted = false;
  int arity() const { return weighted ? 2 : 1; }
};
std::span<const Fold> folds();

// A total is named by 2 * fold + which.
constexpr const Fold& fold_of(std::span<const Fold> all, std::int64_t total) { return all[total / 2]; }
std::string_view name_of_total(std::int64_t total);
// Of the first reduction that has it: variance, logsumexp; else of what it is made for: its second total.
std::string_view fold_name(std::int64_t fold);
std::optional<std::int64_t> total_named(std::string_view name);

struct Reduction {
  std::string_view name;
  std::string_view formula;  // for docs
  Op op;                     // Reduce: one value a row. ReduceSpread: one an element, summing to 1 along the row
  std::size_t fold;
  Formula (*value)(Formula element, const Totals& totals);
  // Of a value a row: its derivative to an element. Of one an element, y: s where the adjoint of an element is
  // s (g - sum(g y)).
  Formula (*slope)(Formula element, Formula value);
  std::string_view limits;  // at infinities and NaN: for docs, held by tests/conformance/composed_reductions_test.cpp
  // There is neither an oracle nor a bound of its own: the oracle runs the fold in its own numbers
  // (reference/fold.hpp), so that the bound is that of these very steps, column by column and merge by merge. One
  // number for all rows would be looser, as the error grows with the levels of the tree and with how far the elements
  // lie apart.
};
std::span<const Reduction> reductions();
std::optional<std::size_t> reduction_named(std::string_view name);

// The totals of a fold over `element`, as nodes.
Totals totals_of(std::size_t fold, Formula element);  // of one that is not weighted

// A Reduce or ReduceSpread of `element` as what it is made of.
NodeId expanded_reduction(Program& out, const Node& node, NodeId element);
// The program with means and composed reductions as what they are made of: sums and the totals of folds.
Program expand_reductions(const Program& program);

// A fold's formulas as programs of one value, whose operands are the arguments in order. Calls of functions stand in
// them, or (`expanded`) the primitives that every target runs.
struct FoldFormula {
  Program program;
  std::vector<NodeId> values;
};
FoldFormula fold_term(const Fold& fold, Type compute, bool expanded);  // element, first, count (, weight) -> term
// Whether a node of that formula is an argument of each column's own: element or weight.
constexpr bool is_element(const Node& node) {
  return node.op == Op::Operand && (node.payload == 0 || node.payload == 3);
}
FoldFormula fold_merge(const Fold& fold, Type compute, bool expanded);  // left 2, right 2, their counts -> totals

// Name, formula and limits of every reduction, as a table of docs/language.md.
std::string reduction_table_markdown();

}  // namespace trireme
