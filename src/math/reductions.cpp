#include "math/reductions.hpp"

#include <fmt/format.h>

#include "ir/groups.hpp"
#include "ir/rewrite.hpp"
#include "math/functions.hpp"
#include "math/parts.hpp"

namespace trireme {
namespace {

// Sum and sum of squared distances from the mean, merged as Chan, Golub and LeVeque do.
constexpr Fold moments = {
    .names = {"variance_sum", "variance_squares"},
    .first = Op::Sum,
    .term =
        [](Formula element, Formula sum, Formula count) {
          Formula distance = element - sum / count;
          return distance * distance;
        },
    .merge = [](const Totals& left, const Totals& right, Formula left_count, Formula right_count) -> Totals {
      Formula right_mean = right[0] / right_count, left_mean = left[0] / left_count;
      Formula apart = right_mean - left_mean;
      Formula weight = left_count * (right_count / (left_count + right_count));
      Formula inside = left[1] + right[1];
      return {left[0] + right[0], inside + apart * apart * weight};
    },
};

// A maximum that is no number or infinite shifts nothing: exp(x - x) would be NaN.
Formula shift(Formula top) { return select(abs(top) < top.number(parts::infinity), top, top.number(0)); }
Formula exp(Formula x) { return call("exp", {x}); }

// The maximum, and the sum of exponentials shifted by it.
constexpr Fold exponentials = {
    .names = {"logsumexp_top", "logsumexp_sum"},
    .first = Op::Amax,
    .term = [](Formula element, Formula top, Formula) { return exp(element - shift(top)); },
    .merge = [](const Totals& left, const Totals& right, Formula, Formula) -> Totals {
      Formula top = max(left[0], right[0]), by = shift(top);
      Formula scaled_left = left[1] * exp(left[0] - by);
      Formula scaled_right = right[1] * exp(right[0] - by);
      return {top, scaled_left + scaled_right};
    },
};

// The maximum, and the sum of weights times exponentials shifted by it.
constexpr Fold weighted_exponentials = {
    .names = {"logsumexp_weighted_top", "logsumexp_weighted"},
    .first = exponentials.first,
    .term = exponentials.term,
    .merge = exponentials.merge,
    .weighted = true,
};

constexpr std::array<Fold, 3> fold_table = {moments, exponentials, weighted_exponentials};

constexpr std::array<Reduction, 3> reduction_table = {{
    {
        .name = "variance",
        .formula = "mean((x - mean(x))^2)",
        .op = Op::Reduce,
        .fold = 0,
        .value = [](Formula x, const Totals& totals) { return totals[1] / x.with(Op::ColumnCount, {}); },
        .slope =
            [](Formula x, Formula) {
              Formula scale = x.number(2) / x.with(Op::ColumnCount, {});
              return scale * (x - x.with(Op::Mean, {x.id}));
            },
        .limits = "NaN where an element is infinite or NaN; `sum(x)` and `mean(x)` beside it cost nothing",
    },
    {
        .name = "logsumexp",
        .formula = "ln(sum(e^x))",
        .op = Op::Reduce,
        .fold = 1,
        .value = [](Formula, const Totals& totals) { return shift(totals[0]) + call("log", {totals[1]}); },
        .slope = [](Formula x, Formula value) { return exp(x - value); },
        .limits = "NaN where an element is NaN, else -inf where all are -inf, inf where one is inf; `amax(x)` beside "
                  "it costs "
                  "nothing",
    },
    {
        .name = "softmax",
        .formula = "e^x / sum(e^x)",
        .op = Op::ReduceSpread,
        .fold = 1,
        .value =
            [](Formula x, const Totals& totals) {
              Formula inverse = 1.0 / totals[1];
              return exp(x - totals[0]) * inverse;
            },
        .slope = [](Formula, Formula value) { return value; },
        .limits = "NaN in all of the row where an element is NaN or all are -inf; where one is inf, NaN there and 0 "
                  "elsewhere",
    },
}};

// `arguments` operands of one value each, for `make` to write a formula of.
template <typename Make>
FoldFormula formula(Type compute, int arguments, bool expanded, Make&& make) {
  FoldFormula made;
  made.program.name = "fold";
  made.program.compute = compute;
  std::vector<Formula> args;
  for (int k = 0; k < arguments; ++k) {
    made.program.operands.push_back({.name = fmt::format("a{}", k), .type = compute});
    args.push_back({&made.program, made.program.add(Op::Operand, {}, k)});
  }
  for (Formula value : make(args))
    made.program.results.push_back(
        {.name = fmt::format("r{}", made.program.results.size()), .value = value.id, .type = compute});
  if (expanded) made.program = expand_calls(std::move(made.program));
  made.program = in_canonical_order(made.program);
  for (const Output& result : made.program.results) made.values.push_back(result.value);
  return made;
}

}  // namespace

std::span<const Fold> folds() { return fold_table; }
std::span<const Reduction> reductions() { return reduction_table; }

std::string_view name_of_total(std::int64_t total) { return fold_table[total / 2].names[total % 2]; }

std::string_view fold_name(std::int64_t fold) {
  for (const Reduction& each : reduction_table)
    if (each.fold == static_cast<std::size_t>(fold)) return each.name;
  return fold_table[fold].names[1];
}

std::optional<std::int64_t> total_named(std::string_view name) {
  for (std::size_t k = 0; k < 2 * fold_table.size(); ++k)
    if (name_of_total(static_cast<std::int64_t>(k)) == name) return static_cast<std::int64_t>(k);
  return std::nullopt;
}

std::optional<std::size_t> reduction_named(std::string_view name) {
  for (std::size_t k = 0; k < reduction_table.size(); ++k)
    if (reduction_table[k].name == name) return k;
  return std::nullopt;
}

Totals totals_of(std::size_t fold, Formula element) {
  const std::int64_t first = 2 * static_cast<std::int64_t>(fold);
  Formula left = element.with(Op::Fold, {element.id}, first);
  return {left, element.with(Op::Fold, {element.id}, first + 1)};
}

NodeId expanded_reduction(Program& out, const Node& node, NodeId element) {
  const Reduction& reduction = reductions()[node.payload];
  const Totals totals = totals_of(reduction.fold, {&out, element});
  return reduction.value({&out, element}, totals).id;
}

Program expand_reductions(const Program& program) {
  return rewrite(program, [](Program& out, const Node& node, std::span<const NodeId> args) {
    if (node.op == Op::Mean) return out.add(Op::Div, {out.add(Op::Sum, args), out.add(Op::ColumnCount)});
    if (node.op == Op::Group && group_of(node).op == Op::Mean) {
      GroupReduction kind = group_of(node);
      kind.op = Op::Sum;
      const NodeId total = add_group(out, kind, args[0], args[1]);
      return out.add(Op::Div, {total, add_group(out, kind, out.number(1), args[1])});
    }
    if (node.op != Op::Reduce && node.op != Op::ReduceSpread) return copy_node(out, node, args);
    return expanded_reduction(out, node, args[0]);
  });
}

FoldFormula fold_term(const Fold& fold, Type compute, bool expanded) {
  return formula(compute, fold.weighted ? 4 : 3, expanded, [&](const std::vector<Formula>& x) {
    const Formula term = fold.term(x[0], x[1], x[2]);
    return std::array{fold.weighted ? term * x[3] : term};
  });
}

FoldFormula fold_merge(const Fold& fold, Type compute, bool expanded) {
  return formula(compute, 6, expanded, [&](const std::vector<Formula>& x) {
    return fold.merge({x[0], x[1]}, {x[2], x[3]}, x[4], x[5]);
  });
}

std::string reduction_table_markdown() {
  std::string text = "| reduction | is | limits |\n| --- | --- | --- |\n";
  for (const Reduction& each : reductions())
    text += fmt::format("| `{}` | {} | {} |\n", each.name, each.formula, each.limits);
  return text;
}

}  // namespace trireme
