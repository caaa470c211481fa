#include "problem/samples.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "problem/digest.hpp"
#include "problem/remarks.hpp"
#include "support/float_types.hpp"

namespace trireme {
namespace {

Buffer sampled(Type type, std::int64_t rows, std::int64_t columns, std::string_view name, Placement placement = {}) {
  Buffer buffer = make_buffer(type, {{true}, {true}}, {{rows}, {columns}}, placement).value();
  fill_samples(buffer.array, rows, columns, 0, name, default_range(type));
  return buffer;
}

TEST(Samples, are_frozen) {
  // Other languages repeat these numbers; a change here is a change of every digest.
  EXPECT_EQ(sample_draw(0, "x", 0), 1329082479u);
  EXPECT_EQ(sample_draw(7, "gamma", 4096), 787479140u);
  EXPECT_EQ(sample_draw(0, "x", (std::uint64_t{3} << 32) + 5), 2896071259u);
  EXPECT_EQ(sample_value(0x80000000u, Type::F32, {}), 0.0);
  EXPECT_EQ(sample_value(0xFFFFFFFFu, Type::F32, {}), 2 - 0x1p-22);
  EXPECT_EQ(sample_value(0, Type::F32, {}), -2.0);
  EXPECT_EQ(sample_value(0xFFFFFFFFu, Type::I8, default_range(Type::I8)), 127);
}

TEST(Samples, spread_evenly_and_differ_by_seed_and_name) {
  double mean = 0, square = 0;
  int same_seed = 0, same_name = 0;
  std::set<std::uint32_t> distinct;
  const int count = 100000;
  for (int k = 0; k < count; ++k) {
    std::uint32_t draw = sample_draw(0, "x", k);
    double value = sample_value(draw, Type::F32, {});
    mean += value / count;
    square += value * value / count;
    same_seed += draw == sample_draw(1, "x", k);
    same_name += draw == sample_draw(0, "y", k);
    distinct.insert(draw);
  }
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(square, 4.0 / 3, 0.02);
  EXPECT_LE(same_seed + same_name, 1);
  EXPECT_GT(distinct.size(), count - 20u);
}

TEST(Samples, depend_on_the_index_and_not_on_the_place) {
  Buffer dense = sampled(Type::BF16, 3, 5, "x"), placed = sampled(Type::BF16, 3, 5, "x", {3, {9}});
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 5; ++c)
      EXPECT_EQ(load_bits(Type::BF16, dense.array.entry(r, c)), load_bits(Type::BF16, placed.array.entry(r, c)));
}

TEST(Samples, keep_to_their_ranges) {
  Remarks remarks = parse_remarks(
                        "#: try 7x257   #: try 33x4096 gamma=none\n# words\n#: range target 0..n-1 integer\n"
                        "#: range scale 0.5..2\nop(x[i,j]) -> (y[i,j])\n")
                        .value();
  ASSERT_EQ(remarks.tries, (std::vector<std::string>{"7x257", "33x4096 gamma=none"}));
  EXPECT_EQ(remarks.ranges.at("target").at(10), (SampleRange{0, 9, true}));
  std::set<double> seen;
  for (int k = 0; k < 1000; ++k) {
    seen.insert(sample_value(sample_draw(0, "target", k), Type::I32, remarks.ranges.at("target").at(10)));
    double scale = sample_value(sample_draw(0, "scale", k), Type::F64, remarks.ranges.at("scale").at(10));
    EXPECT_TRUE(scale >= 0.5 && scale < 2);
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 9);
}

TEST(Samples, remarks_that_say_nothing_known_are_refused) {
  for (const char* text : {"#: tri 7x257", "#: range x 0", "#: range x 0..m", "#: range x 0..1 whole", "#:"})
    EXPECT_FALSE(parse_remarks(text)) << text;
}

TEST(Digest, is_of_values_and_not_of_places_or_nans) {
  Buffer dense = sampled(Type::F16, 3, 5, "x"), placed = sampled(Type::F16, 3, 5, "x", {3, {9}});
  std::string want = digest({&dense, 1});
  EXPECT_EQ(want, "ef269998b7206b7bb60e41879b46ab8c");
  EXPECT_EQ(digest({&placed, 1}), want);
  store_bits(Type::F16, dense.array.entry(1, 1), 0x7E00);
  store_bits(Type::F16, placed.array.entry(1, 1), 0xFD01);
  EXPECT_EQ(digest({&dense, 1}), digest({&placed, 1}));
  EXPECT_NE(digest({&dense, 1}), want);
  EXPECT_EQ(digest(std::span<const Buffer>{}), "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing
}

}  // namespace
}  // namespace trireme
