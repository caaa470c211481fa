// Which programs tiles are taken of, and what in them stands on which rows.
#include "schedule/tiling.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "language/parse.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

std::optional<Tiling> tiling(const std::string& x, const std::string& y, const std::string& value) {
  const std::string text = fmt::format("f(x{}, w[i % m, j], b[i], m = 3) -> (y{})\n  y = {}\n", x, y, value);
  const Binding binding{.types = {{"x", Type::F32}, {"w", Type::F32}, {"b", Type::F32}, {"y", Type::F32}}};
  return tiling_of(prepare(parse(text).value(), binding).value().expanded, {}, 512);
}

TEST(Tiling, of_a_product) {
  const std::optional<Tiling> found = tiling("[i / m, j]", "[i]", "sum(x * exp(w)) + b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->m, 3);
  EXPECT_EQ(found->reductions.size(), 1u);
  ASSERT_EQ(found->loads.size(), 2u);
  std::vector<Tiling::Cell> cells;
  for (NodeId id : found->loads) cells.push_back(found->cell_of(id, {1, 2}));
  std::sort(cells.begin(), cells.end());
  EXPECT_EQ(cells, (std::vector<Tiling::Cell>{{-1, 2}, {1, -1}}));
  EXPECT_EQ(found->cell_of(found->reductions[0], {1, 2}), (Tiling::Cell{1, 2}));
}

TEST(Tiling, of_nothing_else) {
  EXPECT_TRUE(tiling("[i / m, j]", "[i]", "sum(x * w)"));
  EXPECT_FALSE(tiling("[i, j]", "[i]", "sum(x * w)"));                    // another x in each row
  EXPECT_FALSE(tiling("[i / (m + 1), j]", "[i]", "sum(x * w)"));          // another m
  EXPECT_FALSE(tiling("[i % m, j]", "[i]", "sum(x * w)"));                // of one kind
  EXPECT_FALSE(tiling("[i / m, j]", "[i]", "sum(x * w * b)"));            // the row's own, in the sum
  EXPECT_FALSE(tiling("[i / m, j]", "[i]", "sum(x * w / amax(x * w))"));  // two sweeps
  EXPECT_FALSE(tiling("[i / m, j]", "[i, j]", "x * w"));                  // nothing is summed
}

}  // namespace
}  // namespace trireme
