// The operators at the widths of real models and vocabularies: what tables, the tuner and pinned kernels walk.
#pragma once
#include <string>
#include <vector>

#include "plan/ops.hpp"
#include "problem/problem.hpp"

namespace trireme {

struct OperatorPoint {
  const OperatorText* op;
  bool backward;
  Type type;  // of the leading operand (problem_shape.hpp)
  std::int64_t columns;

  std::string name() const;  // "rms_norm backward bf16 4096"
  // As the operator's first '#: try' line has it, which gives the constants and the other types that it needs.
  Result<Problem> problem(std::int64_t rows) const;
  std::int64_t rows_of(std::int64_t bytes) const;  // of an array of so many bytes; at least one
};

std::vector<OperatorPoint> operator_points();  // every operator, both directions, three types, 29 widths
Result<OperatorPoint> parse_operator_point(std::string_view name);

}  // namespace trireme
