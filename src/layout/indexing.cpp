#include "layout/indexing.hpp"

#include <cmath>

namespace trireme {
namespace {

Error wrong(std::string message) { return {Code::InvalidArgument, std::move(message)}; }

Result<std::int64_t> as_integer(double value) {
  if (!(std::fabs(value) <= 0x1p53) || std::floor(value) != value)
    return wrong("an index divisor must be an integer, not " + std::to_string(value));
  return static_cast<std::int64_t>(value);
}

Result<std::int64_t> divisor(const Program& program, NodeId id, std::int64_t none, std::int64_t columns,
                             std::span<const double> constants) {
  if (id == no_node) return none;
  TRIREME_TRY(value, index_constant(program, id, columns, constants));
  if (value <= 0) return wrong("an index divisor must be positive, not " + std::to_string(value));
  return value;
}

Result<AxisIndexing> axis_indexing(const Program& program, const Axis& axis, std::int64_t columns,
                                   std::span<const double> constants) {
  TRIREME_TRY(divide, divisor(program, axis.divide, 1, columns, constants));
  TRIREME_TRY(wrap, divisor(program, axis.wrap, 0, columns, constants));
  return AxisIndexing{axis.present, divide, wrap};
}

}  // namespace

Result<std::int64_t> index_constant(const Program& program, NodeId id, std::int64_t columns,
                                    std::span<const double> constants) {
  const Node& node = program[id];
  if (node.op == Op::Number) return as_integer(node.number());
  if (node.op == Op::ColumnCount) return columns;
  if (node.op == Op::Constant && node.payload < static_cast<std::int64_t>(constants.size()))
    return as_integer(constants[node.payload]);
  if (node.op == Op::Neg) {
    TRIREME_TRY(value, index_constant(program, node.args[0], columns, constants));
    return -value;
  }
  if (node.op == Op::Div) {
    TRIREME_TRY(a, index_constant(program, node.args[0], columns, constants));
    TRIREME_TRY(b, index_constant(program, node.args[1], columns, constants));
    if (b == 0 || a % b != 0)
      return wrong("an index divisor must be an integer, not " + std::to_string(a) + " / " + std::to_string(b));
    return a / b;
  }
  return wrong("an index divisor is made of numbers, constants, n and /, not of '" + std::string(facts(node.op).name) +
               "'");
}

Result<Indexing> indexing(const Program& program, const Spread& spread, std::int64_t columns,
                          std::span<const double> constants) {
  TRIREME_TRY(row, axis_indexing(program, spread.row, columns, constants));
  TRIREME_TRY(column, axis_indexing(program, spread.column, columns, constants));
  return Indexing{row, column};
}

}  // namespace trireme
