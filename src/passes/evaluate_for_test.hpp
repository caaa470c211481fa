// Runs small programs in f64, so that tests can compare gradients with differences. Not the contract's order of
// additions: that is the reference's business. Tests only.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/groups.hpp"
#include "ir/primitives.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {

using Values = std::map<std::string, std::vector<double>>;  // of operands and results, row by row

class Evaluation {
 public:
  Evaluation(const Program& program, std::int64_t rows, std::int64_t columns)
      : program_(program), rows_(rows), columns_(columns) {}

  // Extents of an operand or result: how many entries it has along each axis.
  std::size_t entries(const Spread& spread) const {
    return static_cast<std::size_t>(extent(spread.row, rows_) * extent(spread.column, columns_));
  }

  // `program` is one that prepare() has made; `constants` are the values of those it still has.
  Values run(const Values& operands, const std::map<std::string, double>& constants) {
    ContractArithmetic arithmetic;
    operands_ = &operands, constants_ = &constants;
    std::vector<bool> wanted = reachable(program_);
    values_.assign(program_.size(), {});
    for (NodeId id = 0; id < program_.size(); ++id)
      if (wanted[id] && !is_column_reduction(program_[id].op)) values_[id] = evaluate(program_[id]);
    Values results;
    for (const Output& result : program_.results) results[result.name] = store(result);
    return results;
  }

  double constant_of(NodeId id) const {
    const Node& node = program_[id];
    if (node.op == Op::Number) return node.number();
    if (node.op == Op::ColumnCount) return static_cast<double>(columns_);
    double a = constant_of(node.args[0]), b = node.arity > 1 ? constant_of(node.args[1]) : 0;
    return apply_primitive<double>(node, a, b, 0);
  }

 private:
  using Matrix = std::vector<double>;  // rows x columns, every value spread out

  std::int64_t divisor(NodeId id, std::int64_t otherwise) const {
    return id == no_node ? otherwise : static_cast<std::int64_t>(constant_of(id));
  }
  std::int64_t extent(const Axis& axis, std::int64_t size) const {
    if (!axis.present) return 1;
    std::int64_t by = divisor(axis.divide, 1);
    return divisor(axis.wrap, (size + by - 1) / by);
  }
  std::int64_t at(const Axis& axis, std::int64_t index) const {
    if (!axis.present) return 0;
    index /= divisor(axis.divide, 1);
    return axis.wrap == no_node ? index : index % divisor(axis.wrap, 1);
  }
  std::size_t entry(const Spread& spread, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(at(spread.row, i) * extent(spread.column, columns_) + at(spread.column, j));
  }

  template <typename ValueAt>
  Matrix each(ValueAt&& value_at) const {
    Matrix made;
    for (std::int64_t i = 0; i < rows_; ++i)
      for (std::int64_t j = 0; j < columns_; ++j) made.push_back(value_at(i, j));
    return made;
  }
  double value(NodeId id, std::int64_t i, std::int64_t j) const { return values_[id][i * columns_ + j]; }

  Matrix evaluate(const Node& node) const {
    switch (node.op) {
      case Op::Number: return each([&](auto, auto) { return node.number(); });
      case Op::Constant: {
        double given = constants_->at(program_.operands[node.payload].name);
        return each([&](auto, auto) { return given; });
      }
      case Op::Operand: {
        const Operand& operand = program_.operands[node.payload];
        const std::vector<double>& given = operands_->at(operand.name);
        return each([&](auto i, auto j) { return given.at(entry(operand.spread, i, j)); });
      }
      case Op::RowIndex: return each([](auto i, auto) { return static_cast<double>(i); });
      case Op::ColumnIndex: return each([](auto, auto j) { return static_cast<double>(j); });
      case Op::ColumnCount: return each([&](auto, auto) { return static_cast<double>(columns_); });
      case Op::Rotate: {
        auto by = static_cast<std::int64_t>(constant_of(node.args[1])) % columns_;
        return each([&](auto i, auto j) { return value(node.args[0], i, (j + by + columns_) % columns_); });
      }
      case Op::Sum:
      case Op::Amax:
      case Op::Amin: return each([&](auto i, auto) { return reduced(node, i); });
      case Op::Group: return each([&](auto i, auto j) { return grouped(node, i, j); });
      case Op::PickColumn:
        return each([&](auto i, auto) {
          const auto column = static_cast<std::int64_t>(value(node.args[1], i, 0));
          return column >= 0 && column < columns_ ? value(node.args[0], i, column) : 0.0;
        });
      case Op::Fold: return each([&](auto i, auto) { return folded(node, i); });
      default:
        return each([&](auto i, auto j) {
          double args[3] = {};
          for (int k = 0; k < node.arity; ++k) args[k] = value(node.args[k], i, j);
          return apply_primitive<double>(node, args[0], args[1], args[2]);
        });
    }
  }

  // Of the columns that share a group with j, or over the first columns of all groups.
  double grouped(const Node& node, std::int64_t i, std::int64_t j) const {
    const GroupReduction group = group_of(node);
    const auto by = static_cast<std::int64_t>(constant_of(node.args[1]));
    std::optional<double> total;
    for (std::int64_t other = 0; other < columns_; ++other) {
      const bool first = group.wraps ? other < by : other % by == 0;
      const bool together = group.wraps ? other % by == j % by : other / by == j / by;
      if (group.entries ? !first : !together) continue;
      const double next = value(node.args[0], i, other);
      if (!total) total = next;
      else
        total = group.op == Op::Sum    ? *total + next
                : group.op == Op::Amax ? larger(*total, next)
                                       : smaller(*total, next);
    }
    return *total;
  }

  // The whole row as one stripe.
  double folded(const Node& node, std::int64_t i) const {
    const Fold& fold = folds()[node.payload / 2];
    Node first = node;
    first.op = fold.first;
    const double total = reduced(first, i);
    if (node.payload % 2 == 0) return total;
    const FoldFormula term = fold_term(fold, Type::F64, true);
    double sum = 0;
    for (std::int64_t j = 0; j < columns_; ++j) {
      const double weight = fold.weighted ? value(node.args[1], i, j) : 0;
      const double arguments[] = {value(node.args[0], i, j), total, static_cast<double>(columns_), weight};
      std::vector<double> values(term.program.size());
      for (NodeId id = 0; id < values.size(); ++id) {
        const Node& each = term.program[id];
        double args[3] = {};
        for (int k = 0; k < each.arity; ++k) args[k] = values[each.args[k]];
        values[id] = each.op == Op::Operand  ? arguments[each.payload]
                     : each.op == Op::Number ? each.number()
                                             : apply_primitive<double>(each, args[0], args[1], args[2]);
      }
      sum += values[term.values[0]];
    }
    return sum;
  }

  double reduced(const Node& node, std::int64_t i) const {
    double total = value(node.args[0], i, 0);
    for (std::int64_t j = 1; j < columns_; ++j) {
      double next = value(node.args[0], i, j);
      total = node.op == Op::Sum ? total + next : node.op == Op::Amax ? larger(total, next) : smaller(total, next);
    }
    return total;
  }

  std::vector<double> store(const Output& result) const {
    std::vector<double> made(entries(result.spread));
    const Op op = program_[result.value].op;
    const bool sum = is_column_reduction(op);
    if (op == Op::ColumnMax) made.assign(made.size(), -std::numeric_limits<double>::infinity());
    NodeId source = sum ? program_[result.value].args[0] : result.value;
    for (std::int64_t i = 0; i < rows_; ++i)
      for (std::int64_t j = 0; j < columns_; ++j) {
        double& place = made[entry(result.spread, i, j)];
        const double next = value(source, i, j);
        place = op == Op::ColumnMax ? larger(place, next) : next + (sum ? place : 0);
      }
    return made;
  }

  const Program& program_;
  std::int64_t rows_, columns_;
  const Values* operands_ = nullptr;
  const std::map<std::string, double>* constants_ = nullptr;
  std::vector<Matrix> values_;
};

}  // namespace trireme
