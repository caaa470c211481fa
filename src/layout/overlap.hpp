// Do two arrays share memory? Judged by elements: the halves of a packed gate|up row are disjoint.
#pragma once
#include <cstdint>
#include <optional>

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

// The same; nothing where that lies beyond 2^61 bytes.
std::optional<ByteRange> checked_byte_range(const Extent& extent);

enum class Overlap : std::uint8_t {
  None,
  Identical,  // the same elements in the same places
  Some,
  Unknown,  // they lie among each other, and there are too many pieces to look at
};

// Takes no time where the arrays lie apart, or among each other with the same strides; otherwise time for each piece
// whose surroundings meet the other array's, up to some 10 ms. Allocates nothing.
Overlap overlap(const Extent& a, const Extent& b);

// Do two entries of the array share memory? Unknown counts as yes.
bool overlaps_itself(const Extent& extent);

}  // namespace trireme
