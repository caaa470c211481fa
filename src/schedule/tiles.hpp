// Kernels that take a tile of rows at a time (tiling.hpp). Each sum has the contract's order: its columns are lanes,
// and the levels across lanes leave every sum of the tile in lanes of its own.
#pragma once
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/tiling.hpp"

namespace trireme {

void lower_tiles(const Program& program, const Config& config, Kernel& kernel);

}  // namespace trireme
