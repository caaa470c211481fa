#include "layout/indexing.hpp"

#include <algorithm>

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
  return AxisIndexing{axis.present, divide, wrap, axis.picked()};
}

}  // namespace

Shares shares_of(const AxisIndexing& axis, std::int64_t count) {
  Shares shares;
  shares.run = axis.present ? axis.divide : std::max<std::int64_t>(count, 1);
  std::int64_t full = 0, rest = count;
  bool endless = axis.wrap == 0 || __builtin_mul_overflow(shares.run, axis.wrap, &shares.period);
  if (endless) {
    shares.period = shares.run;  // never gone
  } else {
    full = count / shares.period;
    rest = count % shares.period;
  }
  shares.boundary = rest / shares.run;
  shares.counts = {full * shares.run + shares.run, full * shares.run + rest % shares.run, full * shares.run};
  return shares;
}

Result<Indexing> indexing(const Program& program, const Spread& spread, std::int64_t columns,
                          std::span<const double> constants) {
  TRIREME_TRY(row, axis_indexing(program, spread.row, columns, constants));
  TRIREME_TRY(column, axis_indexing(program, spread.column, columns, constants));
  return Indexing{row, column};
}

}  // namespace trireme
