#include "layout/indexing.hpp"

#include "ir/index_arithmetic.hpp"

namespace trireme {
namespace {

Result<std::int64_t> divisor(const Program& program, NodeId id, std::int64_t none, std::int64_t columns,
                             std::span<const double> constants) {
  if (id == no_node) return none;
  TRIREME_TRY(value, index_constant(program, id, {columns, constants}, a_divisor));
  if (value > 0) return value;
  return Error{Code::InvalidArgument, std::string(a_divisor) + ", not " + std::to_string(value)};
}

Result<AxisIndexing> axis_indexing(const Program& program, const Axis& axis, std::int64_t columns,
                                   std::span<const double> constants) {
  TRIREME_TRY(divide, divisor(program, axis.divide, 1, columns, constants));
  TRIREME_TRY(wrap, divisor(program, axis.wrap, 0, columns, constants));
  return AxisIndexing{axis.present, divide, wrap};
}

}  // namespace

Result<Indexing> indexing(const Program& program, const Spread& spread, std::int64_t columns,
                          std::span<const double> constants) {
  TRIREME_TRY(row, axis_indexing(program, spread.row, columns, constants));
  TRIREME_TRY(column, axis_indexing(program, spread.column, columns, constants));
  return Indexing{row, column};
}

}  // namespace trireme
