// Do two arrays share memory? Judged by elements: the halves of a packed gate|up row are disjoint.
#pragma once
#include <cstdint>

#include "layout/array.hpp"

namespace trireme {

struct Extent {
  Array array;
  std::int64_t rows = 0, columns = 0;  // entries
};

// First and last byte from `array.data` on: [low, high). Both 0 where there are no entries.
struct ByteRange {
  std::int64_t low = 0, high = 0;
};
ByteRange byte_range(const Extent& extent);

enum class Overlap : std::uint8_t {
  None,
  Identical,  // the same elements in the same places
  Some,
  Unknown,  // byte ranges meet, and neither array's elements lie in an order that could be judged
};

// Takes time proportional to the rows (columns, where those do not lie side by side) at worst, and none where the
// arrays lie apart or have the same row stride. Allocates nothing.
Overlap overlap(const Extent& a, const Extent& b);

// Do two entries of the array share memory? Unknown counts as yes.
bool overlaps_itself(const Extent& extent);

}  // namespace trireme
