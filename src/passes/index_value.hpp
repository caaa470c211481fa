// Arithmetic on indices: the divisors of spreads and the distances of rotations.
#pragma once
#include <optional>

#include "ir/program.hpp"

namespace trireme {

// The value of an expression over numbers, in f64; none where it depends on n or on a constant.
std::optional<double> index_value(const Program& program, NodeId id);

// Every number in a divisor of a bound program must be a positive integer; n, whose value the plan knows, may be left.
Status check_divisors(const Program& program);

}  // namespace trireme
