// The `columns` kernels: add up the partial sums that blocks of rows left, in neighbouring pairs of blocks.
//
// columns(args, first, last) counts entries, row by row of entries, of each class in turn. Thread machines have a
// kernel a class, and fill each row of entries up to a multiple of Launch::columns_covered.
#pragma once
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// `slots`: those of the rows kernels; the last kernel has these and perhaps more.
std::vector<Kernel> lower_columns(const Program& program, const std::vector<SumClass>& sums, const Config& config,
                                  std::vector<Slot> slots);

}  // namespace trireme
