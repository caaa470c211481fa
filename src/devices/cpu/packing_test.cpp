// Copies side by side and back, against the places of single entries.
#include "devices/cpu/packing.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "layout/flatten.hpp"
#include "layout/overlap.hpp"

namespace trireme::cpu {
namespace {

TEST(Packing, fault_08_EveryEntryThereAndBackAndNothingElse) {
  std::mt19937 random(3);
  auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const Type types[] = {Type::I8, Type::BF16, Type::F32, Type::F64};
  for (int round = 0; round < 400; ++round) {
    // Axes in any order of places, with gaps, some backwards; rows that are next to each other in one of three.
    Dims extents = {pick(1, 3), pick(1, 70), pick(1, 3), pick(1, 70)}, strides = extents;
    std::vector<std::size_t> order = {0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), random);
    if (round % 3 == 0) order = {1, 3, 0, 2};
    std::int64_t reach = 1;
    for (std::size_t axis : order) {
      strides[axis] = reach * (pick(0, 4) ? 1 : -1);
      reach = reach * extents[axis] + (round % 2 ? pick(0, 3) : 0);
    }
    Type type = types[round % 4];
    ArrayAxes axes{{extents[0], extents[1]}, {extents[2], extents[3]}};
    Extent extent{placed(type, {{true}, {true}}, axes, strides), extents[0] * extents[1], extents[2] * extents[3]};
    ByteRange range = byte_range(extent);
    std::vector<unsigned char> memory(range.high - range.low);
    for (unsigned char& byte : memory) byte = static_cast<unsigned char>(random());
    extent.array.data = memory.data() - range.low;
    std::size_t size = bytes(type);
    std::int64_t first = pick(0, extent.rows - 1), last = pick(first, extent.rows);
    std::int64_t row_bytes = whole_lines(extent.columns * static_cast<std::int64_t>(size));
    std::vector<std::byte> copy((last - first) * row_bytes + 1);
    pack(extent.array, first, last, extent.columns, copy.data(), row_bytes);
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t c = 0; c < extent.columns; ++c)
        ASSERT_EQ(0, std::memcmp(extent.array.entry(r, c), &copy[(r - first) * row_bytes + c * size], size))
            << "round " << round << " entry " << r << ' ' << c;
    std::vector<unsigned char> wanted = memory, before = memory;
    for (std::byte& byte : copy) byte = static_cast<std::byte>(random());
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t c = 0; c < extent.columns; ++c)
        std::memcpy(&wanted[static_cast<unsigned char*>(extent.array.entry(r, c)) - memory.data()],
                    &copy[(r - first) * row_bytes + c * size], size);
    for (bool streaming : {false, true}) {
      memory = before;
      unpack(extent.array, first, last, extent.columns, copy.data(), row_bytes, streaming);
      ASSERT_EQ(memory, wanted) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace trireme::cpu
