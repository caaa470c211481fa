#include "reference/reference.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/integers.hpp"
#include "ir/primitives.hpp"
#include "reference/column_sum.hpp"
#include "reference/row_sum.hpp"
#include "support/mxcsr.hpp"

namespace trireme {
namespace {

Error wrong(Code code, std::string message) { return {code, "reference: " + std::move(message)}; }

template <typename T>
T load(const Array& array, std::int64_t r, std::int64_t c) {
  if constexpr (std::is_same_v<T, double>) return load_f64(array.type, array.entry(r, c));
  return static_cast<T>(load_f32(array.type, array.entry(r, c)));
}

template <typename T>
void store(const Array& array, std::int64_t r, std::int64_t c, T value) {
  store_f64(array.type, array.entry(r, c), value);  // a float is the double it equals
}

// One run of a program; T is its compute type. A node's value is a vector: one entry, or one per column.
template <typename T>
class Run {
 public:
  Run(const Program& program, const Problem2d& problem) : program_(program), problem_(problem), n_(problem.columns) {}

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
  using Values = std::vector<T>;

  // Sorts the nodes that results need by how often they are evaluated, and turns divisors into integers.
  Status prepare() {
    std::vector<bool> wanted(program_.size());
    values_.resize(program_.size());
    last_use_.assign(program_.size(), no_node);
    for (const Output& result : program_.results) {
      bool sums = program_[result.value].op == Op::ColumnSum;
      if (!sums && !(result.spread.row.present && result.spread.plain()))
        return wrong(Code::InvalidProgram, "result '" + result.name + "' must be a colsum");
      wanted[sums ? program_[result.value].args[0] : result.value] = true;
      TRIREME_TRY(of_result, indexing(program_, result.spread, n_));
      column_sums_.emplace_back();
      if (sums) column_sums_.back().emplace(of_result, problem_.rows, n_);
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
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (!wanted[id]) continue;
      (program_[id].by_row ? per_row_ : once_).push_back(id);
      if (program_[id].op != Op::Operand) continue;
      const Operand& operand = program_.operands[program_[id].payload];
      if (!operand.type) return wrong(Code::Internal, "operand '" + operand.name + "' is read but not bound");
      TRIREME_TRY(of_operand, indexing(program_, operand.spread, n_));
      operand_indexing_[program_[id].payload] = of_operand;
    }
    return Done{};
  }

  Values& make(NodeId id, std::size_t count) {
    if (!free_.empty()) {
      values_[id] = std::move(free_.back());
      free_.pop_back();
    }
    values_[id].resize(count);
    return values_[id];
  }

  T at(NodeId id, std::size_t j) const { return values_[id].size() == 1 ? values_[id][0] : values_[id][j]; }

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
      case Op::Number: make(id, 1)[0] = static_cast<T>(node.number()); return Done{};
      case Op::Constant: make(id, 1)[0] = static_cast<T>(problem_.constants[node.payload]); return Done{};
      case Op::RowIndex: make(id, 1)[0] = static_cast<T>(i); return Done{};
      case Op::ColumnCount: make(id, 1)[0] = static_cast<T>(n_); return Done{};
      case Op::ColumnIndex: {
        Values& out = make(id, count);
        for (std::int64_t j = 0; j < count; ++j) out[j] = static_cast<T>(j);
        return Done{};
      }
      case Op::Operand: {
        const Indexing& index = operand_indexing_[node.payload];
        Values& out = make(id, count);
        for (std::int64_t j = 0; j < count; ++j)
          out[j] = load<T>(problem_.operands[node.payload], index.row.entry(i), index.column.entry(j));
        return Done{};
      }
      case Op::Sum: {
        Values row = spread_up(node.args[0]);
        make(id, 1)[0] = row_sum<T>(row);
        return Done{};
      }
      case Op::Amax:
      case Op::Amin: {
        T best = at(node.args[0], 0);
        for (std::int64_t j = 1; j < n_; ++j)
          best = node.op == Op::Amax ? larger(best, at(node.args[0], j)) : smaller(best, at(node.args[0], j));
        make(id, 1)[0] = best;
        return Done{};
      }
      case Op::Rotate: {
        TRIREME_TRY(by, index_constant(program_, node.args[1], n_));
        Values& out = make(id, count);
        for (std::int64_t j = 0; j < count; ++j) out[j] = at(node.args[0], ((j + by) % n_ + n_) % n_);
        return Done{};
      }
      case Op::ColumnSum:
      case Op::Mean:
      case Op::Call:
      case Op::Cast:
      case Op::Largest:
      case Op::StopGradient:
        return wrong(Code::Internal, "'" + std::string(facts(node.op).name) + "' stands in an expanded program");
      default: break;  // a primitive of numbers
    }
    Values& out = make(id, count);
    if (compares_integers(program_, node)) {
      for (std::int64_t j = 0; j < count; ++j)
        out[j] = compare(node.op, integer(node.args[0], i, j), integer(node.args[1], i, j));
      return Done{};
    }
    for (std::int64_t j = 0; j < count; ++j) {
      T a = at(node.args[0], j), b = node.arity > 1 ? at(node.args[1], j) : T(0);
      out[j] = apply_primitive<T>(node, a, b, node.arity > 2 ? at(node.args[2], j) : T(0));
    }
    return Done{};
  }

  std::int64_t integer(NodeId id, std::int64_t i, std::int64_t j) const {
    const Node& node = program_[id];
    if (node.op == Op::RowIndex) return i;
    if (node.op == Op::ColumnIndex) return j;
    if (node.op == Op::ColumnCount) return n_;
    if (node.op == Op::Number) return static_cast<std::int64_t>(node.number());
    const Indexing& index = operand_indexing_[node.payload];
    const Array& array = problem_.operands[node.payload];
    return static_cast<std::int64_t>(load_f64(array.type, array.entry(index.row.entry(i), index.column.entry(j))));
  }

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
    for (std::int64_t j = 0; j < count; ++j) store(problem_.results[k], i, j, at(result.value, j));
  }

  void store_column_result(std::size_t k) {
    Values entries = column_sums_[k]->entries();
    std::int64_t columns = result_indexing_[k].column.extent(n_), at = 0;
    for (T value : entries) {
      store(problem_.results[k], at / columns, at % columns, value);
      ++at;
    }
  }

  const Program& program_;
  const Problem2d& problem_;
  std::int64_t n_;
  std::vector<Indexing> operand_indexing_, result_indexing_;
  std::vector<NodeId> once_, per_row_, last_use_;
  std::vector<Values> values_, free_;  // free_: buffers of values that nothing reads any more
  std::vector<std::optional<ColumnSum<T>>> column_sums_;
};

Status check(const Program& program, const Problem2d& problem) {
  if (!program.compute) return wrong(Code::Internal, "the program is not bound");
  if (problem.columns < 1) return wrong(Code::InvalidArgument, "a row has at least one column");
  if (problem.rows < 0) return wrong(Code::InvalidArgument, "the number of rows is negative");
  if (problem.operands.size() != program.operands.size() || problem.constants.size() != program.operands.size() ||
      problem.results.size() != program.results.size())
    return wrong(Code::InvalidArgument, "one array per operand and result, one constant per operand");
  for (std::size_t k = 0; k < program.operands.size(); ++k)
    if (program.operands[k].type && program.operands[k].type != problem.operands[k].type)
      return wrong(Code::InvalidArgument, "operand '" + program.operands[k].name + "' has another type than its array");
  for (std::size_t k = 0; k < program.results.size(); ++k)
    if (program.results[k].type != problem.results[k].type)
      return wrong(Code::InvalidArgument, "result '" + program.results[k].name + "' has another type than its array");
  return Done{};
}

// Not inlined, so that no arithmetic moves out of the scope that sets the state for it.
template <typename T>
[[gnu::noinline]] Status run_in(const Program& program, const Problem2d& problem) {
  return Run<T>(program, problem).run();
}

}  // namespace

Status run_reference(const Program& program, const Problem2d& problem) {
  TRIREME_CHECK(check(program, problem));
  ContractArithmetic arithmetic;
  return program.compute == Type::F64 ? run_in<double>(program, problem) : run_in<float>(program, problem);
}

}  // namespace trireme
