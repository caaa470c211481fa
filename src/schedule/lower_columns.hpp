// The `columns` kernel: adds up the partial sums that blocks of rows left, in neighbouring pairs of blocks.
#pragma once
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// `slots`: those of the rows kernel; the result has these and perhaps more.
Kernel lower_columns(const Program& program, const Stages& stages, const Config& config, std::vector<Slot> slots);

}  // namespace trireme
