#include "passes/advise.hpp"

#include <gtest/gtest.h>

#include "language/parse.hpp"

namespace trireme {
namespace {

std::vector<std::string> advice(const std::string& text) { return advise(parse(text).value()); }

TEST(Advise, points_out_divisions_by_row_values) {
  std::vector<std::string> remarks = advice("p(x[i,j]) -> (y[i,j])\n  e = exp(x - amax(x))\n  y = 2 * (e / sum(e))\n");
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_EQ(remarks[1].substr(0, 38), "y divides every element by a value of ");
  remarks = advice("p(x[i,j], c = 3) -> (y[i,j])\n  y = x / c\n");
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].substr(0, 38), "y divides every element by a constant:");
}

TEST(Advise, points_out_divisions_by_values_of_groups) {
  for (const char* group : {"j / 8", "j % g"})
    EXPECT_EQ(
        advice(std::string("p(x[i,j], g = 4) -> (y[i,j])\n  y = x / amax(x, ") + group + ")\n"),
        std::vector<std::string>{"y divides every element by a value of its group: `e * (1 / s)` makes one division "
                                 "a group, `e / s` one an element"});
}

TEST(Advise, leaves_other_divisions_alone) {
  EXPECT_TRUE(advice("p(x[i,j]) -> (y[i,j])\n  y = x * (1 / sum(x))\n").empty());
  EXPECT_TRUE(advice("p(x[i,j], w[j]) -> (y[i,j])\n  y = x / w + x / 3 + x / n\n").empty());
}

TEST(Advise, names_the_composed_reduction) {
  EXPECT_EQ(advice("p(x[i,j]) -> (v[i])\n  d = x - mean(x)\n  v = mean(d * d)\n"),
            std::vector<std::string>{"v squares distances from the mean of their row, which takes two sweeps over the "
                                     "row: `variance(x)` takes one, with other last bits: over machines it saves an "
                                     "exchange, on one it is often no faster"});
  EXPECT_EQ(advice("p(x[i,j]) -> (v[i])\n  v = sum(square(x - mean(x)))\n"),
            std::vector<std::string>{"v squares distances from the mean of their row, which takes two sweeps over the "
                                     "row: `variance(x) * n` takes one, with other last bits: over machines it saves "
                                     "an exchange, on one it is often no faster"});
  EXPECT_EQ(advice("p(x[i,j], t) -> (l[i])\n  z = x * t\n  m = amax(z)\n  l = m + log(sum(exp(z - m)))\n"),
            std::vector<std::string>{"l sums exponentials less the largest, which takes two sweeps over the row: "
                                     "`logsumexp(z)` takes one, with other last bits: over machines it saves an "
                                     "exchange, on one it is often no faster"});
  EXPECT_EQ(advice("p(x[i,j]) -> (y[i,j])\n  e = exp(x - amax(x))\n  y = e * (1 / sum(e))\n"),
            std::vector<std::string>{"y sums exponentials less the largest, which takes two sweeps over the row: "
                                     "`softmax(x)` takes one, with other last bits: over machines it saves an "
                                     "exchange, on one it is often no faster"});
  EXPECT_EQ(advice("p(x[i,j]) -> (v[i])\n  v = mean(x * x) - mean(x) * mean(x)\n").size(), 1u);
  // The mean, and the square, in other words.
  for (const char* mean :
       {"mean(x)", "sum(x) / n", "sum(x) * (1 / n)", "(1 / n) * sum(x)", "stop_gradient(sum(x) / n)"})
    for (const char* squares :
         {"mean(d * d)", "mean(fma(d, d, 0))", "sum(d * d) / n", "sum(fma(d, d, -0.0)) * (1 / n)"})
      EXPECT_EQ(advice(std::string("p(x[i,j]) -> (v[i])\n  d = x - ") + mean + "\n  v = " + squares + "\n"),
                std::vector<std::string>{"v squares distances from the mean of their row, which takes two sweeps over "
                                         "the row: `variance(x)` takes one, with other last bits: over machines it "
                                         "saves an exchange, on one it is often no faster"})
          << mean << ", " << squares;
  EXPECT_EQ(advice("p(x[i,j]) -> (v[i])\n  m = sum(x) / n\n  v = sum(x * x) / n - m * m\n").size(), 1u);
  EXPECT_TRUE(advice("p(x[i,j]) -> (v[i])\n  d = x - sum(x) / 7\n  v = mean(fma(d, d, 1))\n").empty());
  // Another value's mean, another value's maximum.
  EXPECT_TRUE(advice("p(x[i,j], z[i,j]) -> (v[i])\n  d = x - mean(z)\n  v = mean(d * d)\n").empty());
  EXPECT_TRUE(advice("p(x[i,j]) -> (v[i])\n  v = variance(x) + logsumexp(x)\n").empty());
}

TEST(Advise, a_division_of_a_group_is_none_of_an_element) {
  EXPECT_TRUE(advice("p(x[i,j], s[i]) -> (y[i,j])\n  y = x * (amax(x, j / 8) / s)\n").empty());
  EXPECT_EQ(advice("p(x[i,j], s[i]) -> (y[i,j])\n  y = x * amax(x, j / 8) / s\n").size(), 1u);
  EXPECT_TRUE(advice("p(x[i,j]) -> (y[i,j])\n  y = x * (1 / amax(x, j / 8))\n").empty());
  EXPECT_TRUE(advice("p(x[i,j], w[j / 8]) -> (y[i,j])\n  y = x / w + x / sum(1, j / 8)\n").empty());
}

TEST(Advise, points_out_shifts_whose_gradient_is_looked_for) {
  const std::string masked =
      "p(x[i,j], m[i,j]) -> (y[i,j])\n  e = select(m == 0, -inf, x)\n  t = SHIFT\n"
      "  p = exp(e - select(abs(t) < inf, t, 0))\n  y = p * (1 / max(sum(p), 1))\n";
  auto with = [&](const std::string& shift) {
    std::string text = masked;
    return advice(text.replace(text.find("SHIFT"), 5, shift));
  };
  ASSERT_EQ(with("amax(e)").size(), 1u);
  EXPECT_EQ(with("amax(e)")[0].substr(0, 45), "t is a maximum that `exp` is shifted by, and ");
  EXPECT_TRUE(with("stop_gradient(amax(e))").empty());
  // Maxima of groups, too.
  const std::string text =
      "p(x[i,j], m[i,j]) -> (y[i,j])\n  e = select(m == 0, -inf, x)\n  t = SHIFT\n"
      "  p = exp(e - select(abs(t) < inf, t, 0))\n  y = p * (1 / max(sum(p, INDEX), 1))\n";
  for (const std::string index : {"j / 64", "j % 64"}) {
    auto grouped = [&](const std::string& shift) {
      std::string made = text;
      made.replace(made.find("SHIFT"), 5, shift);
      return advice(made.replace(made.find("INDEX"), 5, index));
    };
    ASSERT_EQ(grouped("amax(e, " + index + ")").size(), 1u);
    EXPECT_EQ(grouped("amax(e, " + index + ")")[0],
              "t is a maximum that `exp` is shifted by, and its gradient goes to the columns that are the maximum; if "
              "the shift cancels, `stop_gradient(amax(..., " +
                  index.substr(0, 4) +
                  "g))` spares the backward the search "
                  "for them");
    EXPECT_TRUE(grouped("stop_gradient(amax(e, " + index + "))").empty());
  }
  // Where the algebra sees that it cancels, there is nothing to say but the sweeps.
  EXPECT_EQ(advice("p(x[i,j]) -> (y[i,j])\n  e = exp(x - amax(x))\n  y = e * (1 / sum(e))\n").size(), 1u);
  // A maximum that is a value of its own keeps its gradient.
  EXPECT_TRUE(advice("p(x[i,j]) -> (y[i,j])\n  y = x * amax(x)\n").empty());
}

}  // namespace
}  // namespace trireme
