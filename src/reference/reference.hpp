// The contract, executed literally: a row at a time, clear before fast. Every target matches it bit for bit.
#pragma once
#include <span>

#include "ir/program.hpp"
#include "layout/array.hpp"

namespace trireme {

// Runs an expanded program.
Status run_reference(const Program& program, const Problem2d& problem);

}  // namespace trireme
