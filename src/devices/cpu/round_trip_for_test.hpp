// Copies side by side and back, against the places of single entries.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "devices/cpu/packing.hpp"
#include "layout/flatten.hpp"
#include "layout/overlap.hpp"
#include "support/guarded.hpp"

namespace trireme::cpu {

// Between guard pages: whole registers must not reach beyond the first and the last entry.
inline void round_trip(const MoveTable& moves) {
  std::mt19937 random(3);
  auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const Type types[] = {Type::I8, Type::BF16, Type::F32, Type::F64};
  for (int round = 0; round < 400; ++round) {
    // Axes in any order of places, with gaps, some backwards; in one of three rows are next to each other, in another
    // one columns, a few elements apart.
    Dims extents = {pick(1, 3), pick(1, 70), pick(1, 3), pick(1, 70)}, strides = extents;
    const bool whole_lines_apart = round % 6 == 0;
    if (whole_lines_apart) extents = {1, 64, 1, pick(1, 70)};
    std::vector<std::size_t> order = {0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), random);
    if (round % 3 == 0) order = {1, 3, 0, 2};
    if (round % 3 == 1) order = {3, 2, 1, 0}, extents[2] = 1, extents[3] = 16 * pick(1, 5);
    std::int64_t reach = round % 3 == 1 ? pick(1, 9) : 1;
    for (std::size_t axis : order) {
      strides[axis] = reach * (whole_lines_apart || pick(0, 4) ? 1 : -1);
      reach = reach * extents[axis] + (round % 2 ? pick(0, 3) : 0);
    }
    Type type = types[round % 4];
    ArrayAxes axes{{extents[0], extents[1]}, {extents[2], extents[3]}};
    Extent extent{placed(type, {{true}, {true}}, axes, strides), extents[0] * extents[1], extents[2] * extents[3]};
    ByteRange range = byte_range(extent);
    const std::size_t reached = range.high - range.low;
    Guarded guarded(reached, round / 4 % 2 ? Guarded::Edge::End : Guarded::Edge::Begin);
    const std::span memory(guarded.data(), reached);
    for (unsigned char& byte : memory) byte = static_cast<unsigned char>(random());
    extent.array.data = memory.data() - range.low;
    std::size_t size = bytes(type);
    std::int64_t first = pick(0, extent.rows - 1), last = pick(first, extent.rows);
    if (whole_lines_apart) first = 0, last = 64;
    std::int64_t row_bytes = whole_lines(extent.columns * static_cast<std::int64_t>(size));
    std::vector<std::byte> copy((last - first) * row_bytes + 1);
    const DenseRows dense{copy.data(), row_bytes, first, last, extent.columns, round % 2 == 0};
    pack(moves, extent.array, dense);
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t c = 0; c < extent.columns; ++c)
        ASSERT_EQ(0, std::memcmp(extent.array.entry(r, c), &copy[(r - first) * row_bytes + c * size], size))
            << "round " << round << " entry " << r << ' ' << c;
    const std::vector<unsigned char> before(memory.begin(), memory.end());
    std::vector<unsigned char> wanted = before;
    for (std::byte& byte : copy) byte = static_cast<std::byte>(random());
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t c = 0; c < extent.columns; ++c)
        std::memcpy(&wanted[static_cast<unsigned char*>(extent.array.entry(r, c)) - memory.data()],
                    &copy[(r - first) * row_bytes + c * size], size);
    for (bool streaming : {false, true}) {
      std::copy(before.begin(), before.end(), memory.begin());
      unpack(moves, extent.array, dense, streaming);
      ASSERT_TRUE(std::equal(memory.begin(), memory.end(), wanted.begin())) << "round " << round;
    }
  }
}

// One row whose first or last entry lies beside a guard page, columns a few elements apart.
inline void one_row_at_the_edge(const MoveTable& moves) {
  for (Type type : {Type::I8, Type::BF16, Type::F32, Type::F64})
    for (std::int64_t stride : {-4, -3, -2, -1, 2, 3, 4, 5})
      for (std::int64_t columns : {1, 2, 3, 4, 8, 16, 17, 32, 64})
        for (Guarded::Edge edge : {Guarded::Edge::Begin, Guarded::Edge::End}) {
          Extent extent{{.type = type, .column_stride = stride}, 1, columns};
          const ByteRange range = byte_range(extent);
          Guarded guarded(range.high - range.low, edge);
          for (std::int64_t k = 0; k < range.high - range.low; ++k) guarded.data()[k] = static_cast<unsigned char>(k);
          extent.array.data = guarded.data() - range.low;
          const auto size = static_cast<std::int64_t>(bytes(type));
          std::vector<std::byte> copy(whole_lines(columns * size) + 1);
          pack(moves, extent.array, {copy.data(), whole_lines(columns * size), 0, 1, columns, false});
          for (std::int64_t c = 0; c < columns; ++c)
            ASSERT_EQ(0, std::memcmp(extent.array.entry(0, c), &copy[c * size], size)) << name(type) << ' ' << stride;
        }
}

}  // namespace trireme::cpu
