// The contract's folds (math/reductions.hpp), literally: stripes by the rule of rows, then neighbouring pairs.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "ir/contract.hpp"
#include "math/reductions.hpp"
#include "reference/row_sum.hpp"

namespace trireme {

// An argument of an op on a row of numbers: one number for all columns, or one a column.
template <typename Value>
struct RowArgument {
  const Value* first = nullptr;
  bool by_column = false;
  const Value& operator[](std::size_t j) const { return first[by_column ? j : 0]; }
};

// One fold over rows of an Arithmetic's numbers (row_walk.hpp).
template <typename Arithmetic>
class FoldRun {
 public:
  using Value = typename Arithmetic::Value;

  FoldRun(const Fold& fold, Type compute, Arithmetic& arithmetic)
      : fold_(fold),
        arithmetic_(arithmetic),
        term_(fold_term(fold, compute, Arithmetic::runs_expansions)),
        merge_(fold_merge(fold, compute, Arithmetic::runs_expansions)) {}

  // `weights`: as many as the row has columns, or none.
  std::array<Value, 2> operator()(const std::vector<Value>& row, const std::vector<Value>& weights) const {
    std::vector<Part> parts;
    for (std::size_t at = 0; at < row.size(); at += contract::stripe) {
      const std::size_t columns = std::min<std::size_t>(contract::stripe, row.size() - at);
      const std::span<const Value> elements = std::span(row).subspan(at, columns);
      parts.push_back(stripe(elements, fold_.weighted ? std::span(weights).subspan(at, columns) : elements));
    }
    return sum_neighbouring_pairs(std::move(parts), [&](Part& left, const Part& right) { merge(left, right); }).totals;
  }

 private:
  using Values = std::vector<Value>;
  struct Part {
    std::array<Value, 2> totals;
    std::int64_t columns;
  };

  Part stripe(std::span<const Value> elements, std::span<const Value> weights) const {
    Value first = elements[0];
    if (fold_.first == Op::Sum) first = stripe_sum(elements);
    else
      for (std::size_t j = 1; j < elements.size(); ++j) first = larger(first, elements[j]);
    const auto count = static_cast<std::int64_t>(elements.size());
    std::vector<Values> terms = evaluate(term_, {Values(elements.begin(), elements.end()),
                                                 {first},
                                                 {arithmetic_.integer(count)},
                                                 Values(weights.begin(), weights.end())});
    terms[0].resize(elements.size(), terms[0][0]);
    return {{first, stripe_sum(std::span<const Value>(terms[0]))}, count};
  }

  void merge(Part& left, const Part& right) const {
    std::vector<Values> totals = evaluate(merge_, {{left.totals[0]},
                                                   {left.totals[1]},
                                                   {right.totals[0]},
                                                   {right.totals[1]},
                                                   {arithmetic_.integer(left.columns)},
                                                   {arithmetic_.integer(right.columns)}});
    left = {{totals[0][0], totals[1][0]}, left.columns + right.columns};
  }

  std::vector<Values> evaluate(const FoldFormula& formula, const std::vector<Values>& arguments) const {
    const Program& program = formula.program;
    std::vector<Values> values(program.size());
    for (NodeId id = 0; id < program.size(); ++id) {
      const Node& node = program[id];
      if (node.op == Op::Operand) {
        values[id] = arguments[node.payload];
      } else if (node.op == Op::Number) {
        values[id] = {arithmetic_.number(node.number())};
      } else {
        std::size_t count = 1;
        for (NodeId arg : node) count = std::max(count, values[arg].size());
        std::array<RowArgument<Value>, 3> args;
        for (int k = 0; k < 3; ++k) {
          const Values& arg = values[node.args[std::min(k, node.arity - 1)]];  // unused ones repeat the last
          args[k] = {arg.data(), arg.size() > 1};
        }
        values[id].resize(count);
        arithmetic_.apply(node, args, std::span(values[id]));
      }
    }
    std::vector<Values> results;
    for (NodeId id : formula.values) results.push_back(values[id]);
    return results;
  }

  const Fold& fold_;
  Arithmetic& arithmetic_;
  FoldFormula term_, merge_;
};

}  // namespace trireme
