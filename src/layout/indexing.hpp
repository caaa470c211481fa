// Spreads with their divisors as integers: which entry of an operand or result the element (i, j) stands on, and how
// many entries there are.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "ir/program.hpp"
#include "layout/array.hpp"

namespace trireme {

// One axis: entry = (index / divide) % wrap. An absent axis has one entry. The entries of a picked one are what an
// operand says, and as many as its array has (Array::table_rows).
struct AxisIndexing {
  bool present = false;
  std::int64_t divide = 1;
  std::int64_t wrap = 0;  // 0: does not wrap
  bool picked = false;

  bool plain() const { return divide == 1 && wrap == 0 && !picked; }
  std::int64_t entry(std::int64_t index) const {
    if (!present) return 0;
    return wrap == 0 ? index / divide : index / divide % wrap;
  }
  std::int64_t extent(std::int64_t count) const {
    if (!present) return 1;
    return wrap == 0 ? (count + divide - 1) / divide : wrap;
  }
  // On how many entries, side by side, `block` indices from a multiple of `block` on stand; 0 where they may be apart.
  std::int64_t entries_of_block(std::int64_t block) const {
    const std::int64_t entries = divide % block == 0 ? 1 : block % divide == 0 ? block / divide : 0;
    return entries > 1 && wrap % entries != 0 ? 0 : entries;
  }
  friend bool operator==(const AxisIndexing&, const AxisIndexing&) = default;
};

// The rows of entries that an array has.
inline std::int64_t row_entries(const AxisIndexing& row, const Array& array, std::int64_t rows) {
  return row.picked ? array.table_rows : row.extent(rows);
}

// Which indices 0 .. count-1 of an axis share an entry: the k-th one is (k / run) * period + entry * run + k % run.
struct Shares {
  std::int64_t run = 1, period = 1;
  std::int64_t boundary = 0;  // entries before it have counts[0] indices, itself [1], those after it [2]
  std::array<std::int64_t, 3> counts = {};

  int kind(std::int64_t entry) const { return entry < boundary ? 0 : entry == boundary ? 1 : 2; }
  std::int64_t count(std::int64_t entry) const { return counts[kind(entry)]; }
  std::int64_t index(std::int64_t entry, std::int64_t k) const { return k / run * period + entry * run + k % run; }
};
Shares shares_of(const AxisIndexing& axis, std::int64_t count);

struct Indexing {
  AxisIndexing row, column;
  std::int64_t entries(std::int64_t rows, std::int64_t columns) const {
    return row.extent(rows) * column.extent(columns);
  }
  friend bool operator==(const Indexing&, const Indexing&) = default;
};

// The divisors must be positive. `constants` has one value per operand of the program; a bound program needs none.
Result<Indexing> indexing(const Program& program, const Spread& spread, std::int64_t columns,
                          std::span<const double> constants = {});

}  // namespace trireme
