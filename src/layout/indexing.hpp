// Spreads with their divisors as integers: which entry of an operand or result the element (i, j) stands on, and how
// many entries there are.
#pragma once
#include <cstdint>
#include <span>

#include "ir/program.hpp"

namespace trireme {

// One axis: entry = (index / divide) % wrap. An absent axis has one entry.
struct AxisIndexing {
  bool present = false;
  std::int64_t divide = 1;
  std::int64_t wrap = 0;  // 0: does not wrap

  bool plain() const { return divide == 1 && wrap == 0; }
  std::int64_t entry(std::int64_t index) const {
    if (!present) return 0;
    return wrap == 0 ? index / divide : index / divide % wrap;
  }
  std::int64_t extent(std::int64_t count) const {
    if (!present) return 1;
    return wrap == 0 ? (count + divide - 1) / divide : wrap;
  }
};

struct Indexing {
  AxisIndexing row, column;
  std::int64_t entries(std::int64_t rows, std::int64_t columns) const {
    return row.extent(rows) * column.extent(columns);
  }
};

// The divisors must be positive. `constants` has one value per operand of the program; a bound program needs none.
Result<Indexing> indexing(const Program& program, const Spread& spread, std::int64_t columns,
                          std::span<const double> constants = {});

}  // namespace trireme
