#include "schedule/lower.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "language/parse.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

std::string lowered(const char* text, const Config& config, const std::map<std::string, Type>& types = {}) {
  Binding binding;
  const Program program = parse(text).value();
  for (const Operand& operand : program.operands)
    if (!operand.constant) binding.types[operand.name] = Type::F32;
  for (const Output& result : program.results) binding.types[result.name] = Type::F32;
  for (const auto& [name, type] : types) binding.types[name] = type;
  binding.columns = config.columns ? std::optional(config.columns) : std::nullopt;
  return print(lower(prepare(program, binding).value().expanded, config).value().rows);
}

int count(std::string_view text, std::string_view word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// The lines of the next row, shared out among the sweeps; weights stay in the cache by themselves.
TEST(Lower, EverySweepPrefetchesItsShareOfTheNextRow) {
  const std::string text = lowered(
      "rms_norm(x[i,j], gamma[j]) -> (y[i,j])\n"
      "  y = x * rsqrt(mean(x * x)) * gamma\n",
      {.simd = true, .lanes = 16, .prefetch = true});
  const std::size_t second = text.find("# sweep 1");
  ASSERT_NE(second, text.npos);
  EXPECT_EQ(count(text.substr(0, second), "prefetch f32 global [p"), 8 + 2);  // a stripe, and what is left of the row
  EXPECT_GE(count(text.substr(second), "prefetch f32 global [p"), 8);
}

// Two chunks of elements half as wide as lanes are stored as one, on registers of any width.
TEST(Lower, NeighboursOfNarrowElementsAreStoredTogether) {
  for (int lanes : {4, 8, 16}) {
    const char* text = "twice(x[i,j]) -> (y[i,j])\n  y = x + x\n";
    const Config config{.simd = true, .lanes = lanes, .columns = 256, .stripes = 1};
    EXPECT_EQ(count(lowered(text, config, {{"y", Type::BF16}}), "store bf16 global"), 128 / lanes);
    EXPECT_EQ(count(lowered(text, config), "store f32 global"), 256 / lanes);
    EXPECT_EQ(count(lowered(text, config, {{"y", Type::I8}}), "store i8 global"), 256 / lanes);
  }
}

// A row's integer is loaded before the loop, its distance from a turn's columns made once for all of its chunks.
TEST(Lower, ColumnsCompareWithARowsIntegerAsLanes) {
  for (const char* compare : {"j < u", "j <= u", "j == u", "u < j", "u <= j"}) {
    const std::string text =
        lowered(fmt::format("p(x[i,j], u[i]) -> (y[i,j])\n  y = select({}, x, 0)\n", compare).c_str(),
                {.simd = true, .lanes = 8, .unroll = 4}, {{"u", Type::I64}});
    const std::size_t loop = text.find("while", text.find("# sweep 0"));
    const std::string before = text.substr(0, loop), inside = text.substr(loop, text.find("# ", loop) - loop);
    EXPECT_EQ(count(before, "load one i64"), 1) << text;
    EXPECT_EQ(count(inside, "load one i64"), 0) << text;
    EXPECT_EQ(count(inside, "float(24 + lane)"), 1) << text;
    EXPECT_EQ(count(inside, "+ lane <"), 1) << text;  // the row's end
  }
}

// Row r is stored in the loop that takes the exponentials of row r + 1; what is read there is read before any store.
TEST(Lower, ARowsLastSweepGoesAlongWithTheNextRowsExponentials) {
  const std::string text = lowered("softmax(x[i,j]) -> (y[i,j])\n  e = exp(x - amax(x))\n  y = e * (1 / sum(e))\n",
                                   {.simd = true, .lanes = 16, .streaming = true, .prefetch = true, .overlap = true});
  const std::size_t both = text.find("# a row, and the one before it"), alone = text.find("# the last row");
  ASSERT_TRUE(both < alone && alone != text.npos);
  EXPECT_EQ(count(text.substr(0, both), "store f32 global"), 0);
  const std::string loop = text.substr(both, alone - both);
  const std::string chunk = loop.substr(loop.find("# sweep 1"), loop.find("store f32 global") - loop.find("# sweep 1"));
  EXPECT_EQ(count(chunk, "load f32 scratch"), 1);
  EXPECT_EQ(count(chunk, "load f32 global"), 1);
  EXPECT_EQ(count(chunk, "store f32 scratch"), 1);
  EXPECT_EQ(count(loop, "prefetch"), 16 + 2);  // the stripe's lines once, and what is left of the row
}

// A thread's four columns: two entries of the table, the block itself, and one column of each neighbour.
TEST(Lower, RotatedAndDividedColumnsAreLoadedInBlocks) {
  const std::string text = lowered(
      "rope(x[i,j], cos[i, j / 2]) -> (y[i,j])\n"
      "  y = x * cos + rotate(x, 1) * 2 + rotate(x, -1) * 3\n",
      {.simd = false, .lanes = 32, .vector = 4, .columns = 128, .stripes = 1});
  EXPECT_EQ(count(text, "= load one f32 global"), 2) << text;
  EXPECT_EQ(count(text, "= load f32 global"), 4) << text;
  EXPECT_EQ(count(text, " % "), 0) << text;
  EXPECT_EQ(count(text, " / "), 0) << text;
}

// Where a vector stands is found once for all operands: two entries, and a place among the first's columns.
TEST(Lower, OperandsOfTheSameDividedColumnsShareTheirPlaces) {
  const std::string text = lowered("p(x[i,j], gamma[i, j / 49], beta[i, j / 49]) -> (y[i,j])\n  y = x * gamma + beta\n",
                                   {.simd = true, .lanes = 16, .columns = 256, .unroll = 1});
  EXPECT_GT(count(text, " / 49"), 0) << text;
  EXPECT_EQ(count(text, "= load one f32 global"), 2 * count(text, " / 49")) << text;
  EXPECT_EQ(count(text, " % "), 0) << text;
}

// Once a row the target is loaded and its distance made; then it is one comparison a column.
TEST(Lower, UnrolledColumnsAreComparedByTheirDistance) {
  const std::string text =
      lowered("p(x[i,j], t[i]) -> (y[i,j])\n  y = select(j == t, x, 0)\n",
              {.simd = false, .lanes = 32, .vector = 4, .columns = 512, .stripes = 2}, {{"t", Type::I64}});
  EXPECT_EQ(count(text, "i64 global"), 1) << text;
  EXPECT_EQ(count(text, "float("), 1) << text;
  EXPECT_EQ(count(text, " == f"), 2 * 2 * 4) << text;
}

// Ten rounds of Philox, and a rounding to bf16: what they make is kept in scratch for the sweeps that follow.
TEST(Lower, CostlyValuesAreMadeOnce) {
  const char* random = "p(x[i,j], seed[]) -> (y[i,j])\n  h = x * random(seed, 0)\n  y = h - mean(h)\n";
  const char* rounded = "p(x[i,j], r[i,j]) -> (y[i,j])\n  h = cast(x + r, x)\n  y = h - mean(h)\n";
  for (const std::string& text : {lowered(random, {.simd = true, .lanes = 16}, {{"seed", Type::I64}}),
                                  lowered(rounded, {.simd = true, .lanes = 16}, {{"x", Type::BF16}})}) {
    const std::string later = text.substr(text.find("# sweep 1"));
    EXPECT_EQ(count(later, "random"), 0) << text;
    EXPECT_EQ(count(later, "bf16"), 0) << text;
    EXPECT_GT(count(later, "load f32 scratch"), 0) << text;
  }
}

// A value of the row that only a column sum takes is handed over too.
TEST(Lower, OverlappingRowsSumTheirOwnNumbers) {
  const std::string text = lowered("p(x[i,j]) -> (y[i,j], s[j])\n  t = sum(x)\n  y = x + 1\n  s = colsum(t)\n",
                                   {.simd = true, .lanes = 16, .prefetch = true, .overlap = true});
  EXPECT_NE(text.find("# a row, and the one before it"), text.npos) << text;
}

}  // namespace
}  // namespace trireme
