// Overlap against a brute comparison of all elements; flattening one case a line.
#include "layout/overlap.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "layout/flatten.hpp"

namespace trireme {
namespace {

bool share_bytes(const Extent& a, const Extent& b, bool same) {
  auto size = [](const Extent& e) { return static_cast<std::int64_t>(bytes(e.array.type)); };
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < a.columns; ++c)
      for (std::int64_t q = 0; q < b.rows; ++q)
        for (std::int64_t d = 0; d < b.columns; ++d) {
          if (same && r == q && c == d) continue;
          auto* x = static_cast<char*>(a.array.entry(r, c));
          auto* y = static_cast<char*>(b.array.entry(q, d));
          if (x < y + size(b) && y < x + size(a)) return true;
        }
  return false;
}

TEST(Overlap, fault_10_AgreesWithAllPairsOfElements) {
  std::mt19937 random(1);
  auto pick = [&](int low, int high) { return static_cast<std::int64_t>(random() % (high - low + 1)) + low; };
  std::vector<char> memory(4000);
  const Type types[] = {Type::I8, Type::F16, Type::F32};
  int counts[4] = {};
  for (int round = 0; round < 60000; ++round) {
    auto make = [&] {
      Extent e{.rows = pick(0, 4), .columns = pick(1, 4)};
      e.array = {memory.data() + 2000 + pick(-40, 40), types[pick(0, 2)], pick(-9, 9), pick(0, 2) ? 1 : pick(-4, 4)};
      return e;
    };
    Extent a = make(), b = make();
    if (round % 7 == 0) b = a;
    if (round % 3 == 0) b.array.row_stride = a.array.row_stride, b.array.type = a.array.type;
    bool truth = share_bytes(a, b, false);
    Overlap said = overlap(a, b);
    ++counts[static_cast<int>(said)];
    if (said == Overlap::Unknown) continue;
    ASSERT_EQ(said != Overlap::None, truth)
        << a.rows << 'x' << a.columns << " strides " << a.array.row_stride << ' ' << a.array.column_stride << " and "
        << b.rows << 'x' << b.columns << " strides " << b.array.row_stride << ' ' << b.array.column_stride;
    if (!overlaps_itself(a)) ASSERT_FALSE(share_bytes(a, a, true));
  }
  for (int count : counts) EXPECT_GT(count, 50);
}

TEST(Overlap, fault_10_HalvesOfAPackedRow) {
  std::vector<float> packed(64);
  Extent gate{{packed.data(), Type::F32, 16, 1}, 4, 8}, up{{packed.data() + 8, Type::F32, 16, 1}, 4, 8};
  EXPECT_EQ(overlap(gate, up), Overlap::None);
  EXPECT_EQ(overlap(gate, gate), Overlap::Identical);
  up.array.data = packed.data() + 7;
  EXPECT_EQ(overlap(gate, up), Overlap::Some);
}

TEST(Flatten, fault_09_OneStrideOrNone) {
  auto flat = [](Dims extents, Dims strides) {
    return flat_stride({extents.begin(), extents.size()}, {strides.begin(), strides.size()});
  };
  EXPECT_EQ(flat({}, {}), 1);
  EXPECT_EQ(flat({8, 2048}, {2048 * 4096, 4096}), 4096);
  EXPECT_EQ(flat({8, 1, 2048}, {2048 * 12288, 5, 12288}), 12288);
  EXPECT_EQ(flat({3, 5}, {0, 0}), 0);
  EXPECT_EQ(flat({3, 5}, {-10, -2}), -2);
  EXPECT_EQ(flat({3, 0, 5}, {7, 7, 7}), 1);
  EXPECT_EQ(flat({3, 5}, {0, 1}), std::nullopt);
  EXPECT_EQ(flat({3, 5}, {1, 3}), std::nullopt);
  EXPECT_EQ(flat({8, 2048}, {2048 * 4096 + 1, 4096}), std::nullopt);
}

}  // namespace
}  // namespace trireme
