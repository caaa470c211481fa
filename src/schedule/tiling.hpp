// Which programs tiles of rows can be taken of: operands per column stand on rows `i / m` and on rows `i % m`, as those
// of a product of matrices, `sum(x * w)` of `x[i / m, j]` and `w[i % m, j]`. A tile is some rows of the one kind by
// some of the other; what is read and made of either is shared by all of the tile's sums.
#pragma once
#include <compare>
#include <map>
#include <optional>
#include <vector>

#include "schedule/config.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {

struct Tiling {
  static constexpr int on_quotient = 1, on_remainder = 2;  // of i by m
  // A node's value in the tile's cell of rows number q and r of the two kinds; -1: the same for all.
  struct Cell {
    int quotient = 0, remainder = 0;
    auto operator<=>(const Cell&) const = default;
  };
  Cell cell_of(NodeId id, Cell at) const {
    return {depends[id] & on_quotient ? at.quotient : -1, depends[id] & on_remainder ? at.remainder : -1};
  }
  std::int64_t m = 0;
  std::vector<int> depends;                 // by node: on which of them its value per column depends
  std::vector<NodeId> reductions, loads;    // all there are; all operands per column
  std::map<std::size_t, AxisIndexing> row;  // by array, of operands that have rows
};

// Of a program that can be lowered so: one sweep that reduces the row, of terms that read rows i / m and i % m alone,
// results per row, plain columns.
std::optional<Tiling> tiling_of(const Program& program, const Layout& layout, std::int64_t columns);
std::optional<std::int64_t> tiled_by(const Program& program, const Layout& layout, std::int64_t columns);  // its m

// Rows of the kinds i / m and i % m in a tile of so many sums, a power of two.
struct TileSides {
  int quotients, remainders;
  std::vector<Tiling::Cell> cells() const;
};
TileSides tile_sides(int sums);

// Scratch for the totals of stripes; of a block on thread machines.
std::int64_t tile_scratch_bytes(const Config& config, std::int64_t value_bytes, std::int64_t reductions);

}  // namespace trireme
