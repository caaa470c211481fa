#include "plan/operator_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "language/parse.hpp"
#include "problem/problem_shape.hpp"
#include "problem/remarks.hpp"

namespace trireme {

std::string OperatorPoint::name() const {
  return fmt::format("{} {} {} {}", op->name, backward ? "backward" : "forward", trireme::name(type), columns);
}

Result<Problem> OperatorPoint::problem(std::int64_t rows) const {
  TRIREME_TRY(remarks, parse_remarks(op->text));
  TRIREME_TRY(problem, parse_problem(fmt::format("{} {}", op->name, remarks.tries.at(0))));
  TRIREME_TRY(forward, parse(op->text));
  problem.shape = {rows, columns};
  problem.axes = 1;
  problem.backward = backward;
  problem.absent.clear();
  if (const auto leading = leading_operand(forward)) problem.types[forward.operands[*leading].name] = type;
  return problem;
}

std::int64_t OperatorPoint::rows_of(std::int64_t bytes) const {
  return std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(trireme::bytes(type)) / columns);
}

std::vector<OperatorPoint> operator_points() {
  static constexpr std::int64_t widths[] = {128,   256,   512,   896,   1024,   1152,   2048,   2880,   3584,  4096,
                                            5120,  7168,  8192,  11008, 12288,  14336,  16384,  18432,  18944, 28672,
                                            32000, 32768, 50304, 65536, 128256, 131072, 151936, 256000, 262144};
  std::vector<OperatorPoint> points;
  for (const OperatorText& op : operator_texts())
    for (bool backward : {false, true})
      for (Type type : {Type::BF16, Type::F16, Type::F32})
        for (std::int64_t columns : widths) points.push_back({&op, backward, type, columns});
  return points;
}

Result<OperatorPoint> parse_operator_point(std::string_view name) {
  std::istringstream words{std::string(name)};
  std::string op, direction, type;
  OperatorPoint point{};
  words >> op >> direction >> type >> point.columns;
  point.backward = direction == "backward";
  point.type = type_named(type).value_or(Type::F32);
  for (const OperatorText& each : operator_texts())
    if (each.name == op) point.op = &each;
  if (!point.op || point.columns < 1 || point.name() != name)
    return Error{Code::InvalidArgument, fmt::format("'{}' is no point of a table", name)};
  return point;
}

}  // namespace trireme
