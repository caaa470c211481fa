// Kernels that take a tile of rows at a time: where operands per column stand on rows `i / m` and on rows `i % m`, as
// those of a product of matrices, `sum(x * w)` of `x[i / m, j]` and `w[i % m, j]`. A tile is some rows of the one kind
// by some of the other; what is read and made of either is shared by all of the tile's sums. Each sum has the
// contract's order: its columns are lanes, and the levels across lanes leave every sum of the tile in lanes of its own.
#pragma once
#include <optional>

#include "schedule/config.hpp"
#include "schedule/kernel.hpp"

namespace trireme {

// The m of a program that can be lowered so: one sweep that reduces the row, of terms that read rows i / m and i % m
// alone, results per row, plain columns.
std::optional<std::int64_t> tiled_by(const Program& program, const Layout& layout, std::int64_t columns);

// Rows of the kinds i / m and i % m in a tile of so many sums, a power of two.
struct TileSides {
  int quotients, remainders;
};
TileSides tile_sides(int sums);

// Scratch of a block of a thread machine.
std::int64_t tile_scratch_bytes(const Config& config, std::int64_t value_bytes, std::int64_t reductions);

void lower_tiles(const Program& program, const Config& config, Kernel& kernel);

}  // namespace trireme
