// The contract, executed literally: a row at a time, clear before fast. Every target matches it bit for bit.
#pragma once
#include <span>

#include "ir/program.hpp"
#include "layout/array.hpp"

namespace trireme {

struct Problem2d {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const double> constants;  // one per operand of the program; those of operands in memory are ignored
  std::span<const Array> operands;    // one per operand of the program; those of constants are ignored
  std::span<const Array> results;     // one per result
};

// Runs an expanded program.
Status run_reference(const Program& program, const Problem2d& problem);

}  // namespace trireme
