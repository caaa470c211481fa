// Walks a bound program a row at a time: what the reference and the oracle share. A node's value is a vector, one entry
// or one per column; values that do not differ from row to row are made once.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/index_arithmetic.hpp"
#include "ir/integers.hpp"
#include "ir/philox.hpp"
#include "ir/primitives.hpp"
#include "math/reductions.hpp"
#include "reference/column_sum.hpp"
#include "reference/fold.hpp"
#include "reference/group.hpp"
#include "reference/reference.hpp"
#include "reference/row_sum.hpp"
#include "support/float_types.hpp"

namespace trireme {

// One array and constant per operand, one array per result, of the types that the bound program says.
Status check_problem(const Program& program, const Problem2d& problem);

// What a number is, and what is done with numbers, is the Arithmetic's affair:
//   Value                            copyable; Value(0.0), Value(-0.0), +, and smaller() and larger()
//   takes(op)                        whether it can evaluate the op at all
//   number(double), integer(int64)   rounded once to the compute type
//   load(array, r, c), store(result, r, c, value)
//   apply(node, args, out)           an op of single numbers, on a row of them; conditions are numbers too
//   condition(bool)
//   runs_expansions                  whether functions inside folds are their expansions, or calls
template <typename Arithmetic>
class RowWalk {
 public:
  RowWalk(const Program& program, const Problem2d& problem, Arithmetic& arithmetic)
      : program_(program), problem_(problem), arithmetic_(arithmetic), n_(problem.columns) {}

  Status run() {
    TRIREME_CHECK(prepare());
    if (problem_.rows > 0)
      for (NodeId id : once_) TRIREME_CHECK(evaluate(id, 0));
    for (std::int64_t i = 0; i < problem_.rows; ++i) {
      for (NodeId id : per_row_) {
        TRIREME_CHECK(evaluate(id, i));
        for (NodeId arg : program_[id])
          if (last_use_[arg] == id && !values_[arg].empty()) free_.push_back(std::move(values_[arg]));
      }
      for (std::size_t k = 0; k < program_.results.size(); ++k) finish_row(k, i);
      for (NodeId id : per_row_)
        if (!values_[id].empty()) free_.push_back(std::move(values_[id]));
    }
    for (std::size_t k = 0; k < program_.results.size(); ++k)
      if (column_sums_[k]) store_column_result(k);
    return Done{};
  }

 private:
  using Value = typename Arithmetic::Value;
  using Values = std::vector<Value>;

  // Sorts the nodes that results need by how often they are evaluated, and turns divisors and rotations into integers.
  Status prepare() {
    std::vector<bool> wanted(program_.size());
    values_.resize(program_.size());
    last_use_.assign(program_.size(), no_node);
    for (const Output& result : program_.results) {
      bool sums = is_column_reduction(program_[result.value].op);
      if (!sums && needs_column_sum(result.spread))
        return wrong(Code::InvalidProgram, "result '" + result.name + "' must be a colsum or a colmax");
      wanted[sums ? program_[result.value].args[0] : result.value] = true;
      TRIREME_TRY(of_result, indexing(program_, result.spread, n_));
      column_sums_.emplace_back();
      if (sums) column_sums_.back().emplace(program_[result.value].op, of_result, problem_.rows, n_, result.row_block);
      result_indexing_.push_back(of_result);
    }
    std::vector<bool> kept = wanted;  // read after the row's last node: no value to give away in between
    for (NodeId id = static_cast<NodeId>(program_.size()); id-- > 0;)
      if (wanted[id])
        for (NodeId arg : program_[id]) {
          wanted[arg] = true;
          if (last_use_[arg] == no_node && program_[arg].by_row && !kept[arg]) last_use_[arg] = id;
        }
    operand_indexing_.resize(program_.operands.size());
    for (const Output& result : program_.results) TRIREME_CHECK(prepare_pick(result.spread));
    whole_numbers_.resize(program_.size());
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (!wanted[id]) continue;
      (program_[id].by_row ? per_row_ : once_).push_back(id);
      if (!arithmetic_.takes(program_[id].op))
        return wrong(Code::Internal, "'" + std::string(facts(program_[id].op).name) + "' has no place here");
      if (program_[id].op == Op::Rotate) {
        TRIREME_TRY(by, index_constant(program_, program_[id].args[1], {n_}, a_rotation));
        whole_numbers_[id] = by;
      }
      if (program_[id].op == Op::Group) {
        TRIREME_TRY(by, index_constant(program_, program_[id].args[1], {n_}, a_divisor));
        whole_numbers_[id] = by;
      }
      if (program_[id].op != Op::Operand) continue;
      const Operand& operand = program_.operands[program_[id].payload];
      if (!operand.type) return wrong(Code::Internal, "operand '" + operand.name + "' is read but not bound");
      TRIREME_TRY(of_operand, indexing(program_, operand.spread, n_));
      operand_indexing_[program_[id].payload] = of_operand;
      TRIREME_CHECK(prepare_pick(operand.spread));
    }
    return Done{};
  }

  Status prepare_pick(const Spread& spread) {
    if (!spread.row.picked()) return Done{};
    const std::int64_t by = program_[spread.row.pick].payload;
    TRIREME_TRY(of_picker, indexing(program_, program_.operands[by].spread, n_));
    operand_indexing_[by] = of_picker;
    return Done{};
  }

  // The row of entries that row i stands on; nothing where an operand says one that is not there.
  std::optional<std::int64_t> row_entry(const Spread& spread, const Indexing& index, const Array& array,
                                        std::int64_t i) const {
    if (!spread.row.picked()) return index.row.entry(i);
    const std::int64_t by = program_[spread.row.pick].payload;
    const Array& picker = problem_.arrays[by];
    const std::int64_t row = load_integer(picker.type, picker.entry(operand_indexing_[by].row.entry(i), 0));
    return row >= 0 && row < array.table_rows ? std::optional(row) : std::nullopt;
  }

  Values& make(NodeId id, std::size_t count) {
    if (!free_.empty()) {
      values_[id] = std::move(free_.back());
      free_.pop_back();
    }
    values_[id].resize(count);
    return values_[id];
  }

  Value at(NodeId id, std::size_t j) const { return values_[id].size() == 1 ? values_[id][0] : values_[id][j]; }

  // A value with one entry per column, whatever its spread.
  Values spread_up(NodeId id) const {
    Values row(n_);
    for (std::int64_t j = 0; j < n_; ++j) row[j] = at(id, j);
    return row;
  }

  Status evaluate(NodeId id, std::int64_t i) {
    const Node& node = program_[id];
    std::int64_t count = node.by_column ? n_ : 1;
    switch (node.op) {
      case Op::Number: make(id, 1)[0] = arithmetic_.number(node.number()); return Done{};
      case Op::Constant: make(id, 1)[0] = arithmetic_.number(problem_.constants[node.payload]); return Done{};
      case Op::RowIndex: make(id, 1)[0] = arithmetic_.integer(i); return Done{};
      case Op::ColumnCount: make(id, 1)[0] = arithmetic_.integer(n_); return Done{};
      case Op::ColumnIndex: {
        Values& out = make(id, count);
        for (std::int64_t j = 0; j < count; ++j) out[j] = arithmetic_.integer(j);
        return Done{};
      }
      case Op::Operand: {
        const Indexing& index = operand_indexing_[node.payload];
        const Array& array = problem_.arrays[node.payload];
        const std::optional<std::int64_t> row = row_entry(program_.operands[node.payload].spread, index, array, i);
        Values& out = make(id, count);
        for (std::int64_t j = 0; j < count; ++j)
          out[j] = row ? arithmetic_.load(array, *row, index.column.entry(j)) : arithmetic_.number(0);
        return Done{};
      }
      case Op::Random: {
        const Array& seed = problem_.arrays[program_[node.args[0]].payload];
        const std::int64_t key = load_integer(seed.type, seed.data);
        const auto stream = static_cast<std::uint32_t>(node.payload);
        const FirstPlace first = first_place(program_, node);
        Values& out = make(id, count);
        for (std::int64_t j = 0; j < count; ++j)
          out[j] = arithmetic_.number(philox::uniform(key, first.row + i, first.column + j, stream));
        return Done{};
      }
      case Op::Sum:
      case Op::Amax:
      case Op::Amin: {
        Values row = spread_up(node.args[0]);
        make(id, 1)[0] = reduced(node.op, row);
        return Done{};
      }
      case Op::Group: {
        const Values elements = spread_up(node.args[0]);
        reduce_groups(group_of(node), whole_numbers_[id], elements, make(id, count));
        return Done{};
      }
      case Op::Fold: {
        make(id, 1)[0] = totals(node, i)[node.payload % 2];
        return Done{};
      }
      case Op::PickColumn: {
        // The sum's other terms are +0: they change a -0, unless there are none.
        const std::int64_t column = integer(node.args[1], i, 0);
        Value& out = make(id, 1)[0];
        out = Value(0.0);
        if (column >= 0 && column < n_) out = n_ > 1 ? at(node.args[0], column) + Value(0.0) : at(node.args[0], column);
        return Done{};
      }
      case Op::Rotate: {
        Values& out = make(id, count);
        for (std::int64_t j = 0; j < count; ++j) out[j] = at(node.args[0], turned(j + whole_numbers_[id], n_));
        return Done{};
      }
      default: break;  // an op of single numbers
    }
    Values& out = make(id, count);
    if (compares_integers(program_, node)) {
      for (std::int64_t j = 0; j < count; ++j)
        out[j] = arithmetic_.condition(compare(node.op, integer(node.args[0], i, j), integer(node.args[1], i, j)));
      return Done{};
    }
    std::array<RowArgument<Value>, 3> args;
    for (int k = 0; k < 3; ++k) {
      const Values& arg = values_[node.args[std::min(k, node.arity - 1)]];  // unused ones repeat the last
      args[k] = {arg.data(), arg.size() > 1};
    }
    arithmetic_.apply(node, args, std::span(out));
    return Done{};
  }

  // Both totals of a fold; the second is asked for after the first.
  const std::array<Value, 2>& totals(const Node& node, std::int64_t i) {
    const std::int64_t fold = node.payload / 2;
    const NodeId weight = node.arity > 1 ? node.args[1] : no_node;
    if (last_fold_.element != node.args[0] || last_fold_.weight != weight || last_fold_.fold != fold ||
        last_fold_.row != i) {
      auto [run, made] = folds_.try_emplace(fold, folds()[fold], *program_.compute, arithmetic_);
      const Values weights = weight == no_node ? Values{} : spread_up(weight);
      last_fold_ = {node.args[0], weight, fold, i, run->second(spread_up(node.args[0]), weights)};
    }
    return last_fold_.totals;
  }

  std::int64_t integer(NodeId id, std::int64_t i, std::int64_t j) const {
    const Node& node = program_[id];
    if (node.op == Op::RowIndex) return i;
    if (node.op == Op::ColumnIndex) return j;
    if (node.op == Op::ColumnCount) return n_;
    if (node.op == Op::Rotate) return integer(node.args[0], i, turned(j + whole_numbers_[id], n_));
    if (node.op == Op::Number) return static_cast<std::int64_t>(node.number());
    const Indexing& index = operand_indexing_[node.payload];
    const Array& array = problem_.arrays[node.payload];
    const std::optional<std::int64_t> row = row_entry(program_.operands[node.payload].spread, index, array, i);
    return row ? load_integer(array.type, array.entry(*row, index.column.entry(j))) : 0;
  }

  static Error wrong(Code code, std::string message) { return {code, "reference: " + std::move(message)}; }

  static bool compare(Op op, std::int64_t a, std::int64_t b) {
    return op == Op::Less ? a < b : op == Op::LessEqual ? a <= b : a == b;
  }

  void finish_row(std::size_t k, std::int64_t i) {
    const Output& result = program_.results[k];
    if (column_sums_[k]) {
      column_sums_[k]->add_row(i, spread_up(program_[result.value].args[0]));
      return;
    }
    std::int64_t count = result.spread.column.present ? n_ : 1;
    const std::optional<std::int64_t> row =
        row_entry(result.spread, result_indexing_[k], problem_.arrays[program_.array_of_result(k)], i);
    if (is_of_groups(result.spread)) return finish_groups(k, *row);
    for (std::int64_t j = 0; row && j < count; ++j) arithmetic_.store(k, *row, j, at(result.value, j));
  }

  // An entry that no column stands on is +0.0.
  void finish_groups(std::size_t k, std::int64_t row) {
    const AxisIndexing& column = result_indexing_[k].column;
    const bool wraps = column.wrap != 0;
    const std::int64_t by = wraps ? column.wrap : column.divide, groups = group_count(n_, by, wraps);
    for (std::int64_t entry = 0; entry < column.extent(n_); ++entry)
      arithmetic_.store(k, row, entry,
                        entry < groups ? at(program_.results[k].value, first_column(entry, by, wraps)) : Value(0.0));
  }

  void store_column_result(std::size_t k) {
    Values entries = column_sums_[k]->entries();
    std::int64_t columns = result_indexing_[k].column.extent(n_), at = 0;
    const Array& array = problem_.arrays[program_.array_of_result(k)];
    for (const Value& value : entries) {
      const std::int64_t r = at / columns, c = at % columns;
      arithmetic_.store(
          k, r, c,
          program_.results[k].accumulate ? column_sums_[k]->combined(arithmetic_.load(array, r, c), value) : value);
      ++at;
    }
  }

  const Program& program_;
  const Problem2d& problem_;
  Arithmetic& arithmetic_;
  std::int64_t n_;
  std::vector<Indexing> operand_indexing_, result_indexing_;
  std::vector<std::int64_t> whole_numbers_;  // by node: columns further on; what a group's j is divided by
  std::vector<NodeId> once_, per_row_, last_use_;
  std::vector<Values> values_, free_;  // free_: buffers of values that nothing reads any more
  std::vector<std::optional<ColumnSum<Value>>> column_sums_;
  std::map<std::int64_t, FoldRun<Arithmetic>> folds_;
  struct {
    NodeId element = no_node, weight = no_node;
    std::int64_t fold = 0, row = 0;
    std::array<Value, 2> totals;
  } last_fold_;
};

}  // namespace trireme
