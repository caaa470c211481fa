#include "passes/advise.hpp"

#include <gtest/gtest.h>

#include "language/parse.hpp"

namespace trireme {
namespace {

std::vector<std::string> advice(const std::string& text) { return advise(parse(text).value()); }

TEST(Advise, points_out_divisions_by_row_values) {
  std::vector<std::string> remarks = advice("p(x[i,j]) -> (y[i,j])\n  e = exp(x - amax(x))\n  y = 2 * (e / sum(e))\n");
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].substr(0, 38), "y divides every element by a value of ");
}

TEST(Advise, leaves_other_divisions_alone) {
  EXPECT_TRUE(advice("p(x[i,j]) -> (y[i,j])\n  e = exp(x - amax(x))\n  y = e * (1 / sum(e))\n").empty());
  EXPECT_TRUE(advice("p(x[i,j], w[j]) -> (y[i,j])\n  y = x / w + x / 3 + x / n\n").empty());
}

}  // namespace
}  // namespace trireme
