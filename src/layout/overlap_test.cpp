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
  std::vector<char> memory(8000);
  const Type types[] = {Type::I8, Type::F16, Type::F32};
  int counts[4] = {};
  for (int round = 0; round < 60000; ++round) {
    auto axes = [&](std::int64_t& entries, std::int64_t most) {
      Dims extents, strides;
      for (std::int64_t k = pick(1, 3); k > 0; --k) {
        extents.push_back(pick(round % 5 ? 1 : 0, k == 1 ? most : 2));
        strides.push_back(k == 1 && pick(0, 2) ? 1 : pick(-9, 9));
      }
      entries = 1;
      for (std::int64_t extent : extents) entries *= extent;
      return flatten({extents.begin(), extents.size()}, {strides.begin(), strides.size()});
    };
    auto make = [&] {
      Extent e;
      FlatAxes rows = axes(e.rows, 4), columns = axes(e.columns, 3);
      e.array = {memory.data() + 4000 + pick(-60, 60),
                 types[pick(0, 2)],
                 rows.stride,
                 columns.stride,
                 rows.jumps,
                 columns.jumps};
      return e;
    };
    Extent a = make(), b = make();
    if (round % 7 == 0) b = a;
    if (round % 3 == 0) {  // the same layout elsewhere, as the parts of a packed row have it
      void* data = b.array.data;
      b = a;
      b.array.data = data;
    }
    bool truth = share_bytes(a, b, false);
    Overlap said = overlap(a, b);
    ++counts[static_cast<int>(said)];
    ASSERT_EQ(said != Overlap::None, truth) << "round " << round;
    ASSERT_EQ(overlaps_itself(a), share_bytes(a, a, true)) << "round " << round;
  }
  for (Overlap each : {Overlap::None, Overlap::Identical, Overlap::Some})
    EXPECT_GT(counts[static_cast<int>(each)], 1000);
  EXPECT_EQ(counts[static_cast<int>(Overlap::Unknown)], 0);
}

// Two halves of each of 2^31 heads, and rows that go through each other: the same strides take no time, others are
// given up in time.
TEST(Overlap, fault_10_HugeArraysAreJudgedInTime) {
  auto at = [](std::int64_t elements) { return reinterpret_cast<void*>(4096 + elements * 4); };
  Jumps tokens;
  tokens.push_back({32, 8192});
  Extent low{{at(0), Type::F32, 128, 1, tokens}, std::int64_t{1} << 31, 64}, high = low;
  high.array.data = at(64);
  EXPECT_EQ(overlap(low, high), Overlap::None);
  high.array.data = at(63);
  EXPECT_EQ(overlap(low, high), Overlap::Some);
  Extent odd{{at(64), Type::F32, 4096, 1}, std::int64_t{1} << 26, 1};
  EXPECT_NE(overlap(low, odd), Overlap::Some);
}

TEST(Overlap, fault_10_HalvesOfAPackedRow) {
  std::vector<float> packed(64);
  Extent gate{{packed.data(), Type::F32, 16, 1}, 4, 8}, up{{packed.data() + 8, Type::F32, 16, 1}, 4, 8};
  EXPECT_EQ(overlap(gate, up), Overlap::None);
  EXPECT_EQ(overlap(gate, gate), Overlap::Identical);
  up.array.data = packed.data() + 7;
  EXPECT_EQ(overlap(gate, up), Overlap::Some);
}

TEST(Flatten, fault_09_OneStrideAndJumps) {
  auto flat = [](Dims extents, Dims strides) {
    return flatten({extents.begin(), extents.size()}, {strides.begin(), strides.size()});
  };
  auto one = [](std::int64_t stride) { return FlatAxes{stride, {}}; };
  auto jumping = [](std::int64_t stride, std::initializer_list<Jump> jumps) {
    FlatAxes axes{stride, {}};
    for (const Jump& jump : jumps) axes.jumps.push_back(jump);
    return axes;
  };
  EXPECT_EQ(flat({}, {}), one(1));
  EXPECT_EQ(flat({8, 2048}, {2048 * 4096, 4096}), one(4096));
  EXPECT_EQ(flat({8, 1, 2048}, {2048 * 12288, 5, 12288}), one(12288));
  EXPECT_EQ(flat({3, 5}, {0, 0}), one(0));
  EXPECT_EQ(flat({3, 5}, {-10, -2}), one(-2));
  EXPECT_EQ(flat({3, 0, 5}, {7, 7, 7}), one(1));
  EXPECT_EQ(flat({3, 5}, {0, 1}), jumping(1, {{5, -5}}));
  EXPECT_EQ(flat({3, 5}, {1, 3}), jumping(3, {{5, -14}}));
  EXPECT_EQ(flat({8, 32}, {12288, 128}), jumping(128, {{32, 8192}}));
  EXPECT_EQ(flat({2, 3, 5}, {1, 10, -1}), jumping(-1, {{5, 15}, {15, -29}}));
}

// Every entry lies where its axes say, and the axes come back.
TEST(Flatten, fault_09_PlacesAreThoseOfTheAxes) {
  std::mt19937 random(2);
  auto pick = [&](int low, int high) { return static_cast<std::int64_t>(random() % (high - low + 1)) + low; };
  for (int round = 0; round < 2000; ++round) {
    Dims extents, strides;
    std::int64_t entries = 1;
    for (std::int64_t k = pick(1, 8); k > 0; --k) {
      extents.push_back(pick(1, 3));
      strides.push_back(pick(-50, 50));
      entries *= extents[extents.size() - 1];
    }
    FlatAxes flat = flatten({extents.begin(), extents.size()}, {strides.begin(), strides.size()});
    Steps steps = steps_of(entries, flat.stride, flat.jumps);
    for (std::int64_t entry = 0; entry < entries; ++entry) {
      std::int64_t place = 0, rest = entry, again = 0;
      for (std::size_t k = extents.size(); k-- > 0; rest /= extents[k]) place += rest % extents[k] * strides[k];
      rest = entry;
      for (const Step& step : steps) again += rest % step.count * step.stride, rest /= step.count;
      ASSERT_EQ(place_of(entry, flat.stride, flat.jumps), place);
      ASSERT_EQ(again, place);
    }
  }
}

}  // namespace
}  // namespace trireme
