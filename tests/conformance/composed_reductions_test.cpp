// variance, logsumexp, softmax and the totals they are made of: their formulas, written out by hand, and the same bits
// on every device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "same_bits_for_test.hpp"
#include "support/float_types.hpp"

namespace trireme {
namespace {

// With and without what can be shared: a mean beside a variance, a maximum beside a logsumexp.
const std::string normal = "p(x[i,j]) -> (y[i,j], v[i], m[i])\n  v = variance(x)\n  m = mean(x)\n  y = (x - m) * v\n";
const std::string alone = "p(x[i,j]) -> (v[i])\n  v = variance(x * x)\n";
const std::string entropy =
    "p(x[i,j], w[j]) -> (l[i], t[i], e[i])\n  l = logsumexp(x * 8)\n  t = amax(x * 8)\n"
    "  e = sum(softmax(x * 8) * w) + variance(x)\n";
const std::string nested = "p(x[i,j]) -> (y[i,j])\n  y = softmax(x - logsumexp(x * variance(x)))\n";
const std::string of_rows =
    "p(x[i,j], r[i], c[j]) -> (a[i], b[i], d[i])\n  a = variance(r)\n  b = logsumexp(c)\n"
    "  d = logsumexp(r) + sum(x)\n";
const std::string weighted =
    "p(x[i,j], w[j], r[i]) -> (a[i], b[i], c[i], d[i])\n  a = logsumexp_weighted(x * 8, w)\n"
    "  b = logsumexp_weighted(x * 8, x) + logsumexp_sum(x * 8)\n  c = logsumexp_weighted_top(w, r) + variance(x)\n"
    "  d = logsumexp_weighted(x, r) + logsumexp_weighted(r, x)\n";

TEST(ComposedReductions, SameBitsOnEveryDevice) {
  const std::int64_t widths[] = {1, 2, 31, 255, 256, 257, 511, 512, 513, 1025, 4097, 8192, 12801, 33000};
  for (const std::string& text : {normal, alone, entropy, nested, of_rows, weighted})
    for (std::int64_t columns : widths) expect_same_bits(text, fmt::format("p 3x{}", columns));
}

TEST(ComposedReductions, SameBitsForRandomShapesTypesAndThreads) {
  std::mt19937_64 random(25);
  const char* types[] = {"f32", "bf16", "f16", "f64"};
  for (int k = 0; k < 24; ++k) {
    const std::string& text = *(std::vector{&normal, &alone, &entropy, &nested, &weighted}[random() % 5]);
    const std::int64_t columns = 1 + static_cast<std::int64_t>(random() % (k % 4 ? 3000 : 70000));
    expect_same_bits(text, fmt::format("p {}x{} x={}", 1 + random() % 9, columns, types[random() % 4]),
                     {.threads = 1 + static_cast<int>(random() % 3)});
  }
}

// A stripe of 256 columns by the rule of sums, then one merge: both halves of 512 columns, written in the language.
TEST(ComposedReductions, MergeAsTheContractSays) {
  const std::string logsumexp =
      "p(x[i,j]) -> (l[i])\n"
      "  a = amax(select(j < 256, x, -inf))\n  b = amax(select(j < 256, -inf, x))\n"
      "  s = sum(select(j < 256, exp(x - a), -0.0))\n  t = sum(select(j < 256, -0.0, exp(x - b)))\n"
      "  m = max(a, b)\n"
      "  l = m + log(s * exp(a - m) + t * exp(b - m))\n";
  const std::string weighted =
      "p(x[i,j], w[j]) -> (l[i])\n"
      "  a = amax(select(j < 256, x, -inf))\n  b = amax(select(j < 256, -inf, x))\n"
      "  s = sum(select(j < 256, exp(x - a) * w, -0.0))\n  t = sum(select(j < 256, -0.0, exp(x - b) * w))\n"
      "  m = max(a, b)\n"
      "  l = s * exp(a - m) + t * exp(b - m)\n";
  const std::string variance =
      "p(x[i,j]) -> (v[i])\n"
      "  s = sum(select(j < 256, x, -0.0))\n  t = sum(select(j < 256, -0.0, x))\n"
      "  p = x - s / 256\n  q = x - t / (n - 256)\n"
      "  k = sum(select(j < 256, p * p, -0.0))\n  l = sum(select(j < 256, -0.0, q * q))\n"
      "  d = t / (n - 256) - s / 256\n"
      "  v = (k + l + d * d * (256 * ((n - 256) / n))) / n\n";
  for (const char* columns : {"512", "257", "300", "511"}) {
    const std::string line = fmt::format("p 9x{}", columns);
    EXPECT_EQ(reference_digest("p(x[i,j]) -> (l[i])\n  l = logsumexp(x)\n", line), reference_digest(logsumexp, line));
    EXPECT_EQ(reference_digest("p(x[i,j], w[j]) -> (l[i])\n  l = logsumexp_weighted(x, w)\n", line),
              reference_digest(weighted, line));
    EXPECT_EQ(reference_digest("p(x[i,j]) -> (v[i])\n  v = variance(x)\n", line), reference_digest(variance, line));
  }
}

// A row of given numbers, repeated to `columns`.
std::vector<double> run_on(const std::string& expression, std::vector<double> row, std::int64_t columns) {
  const std::string text = fmt::format("p(x[i,j]) -> (y[i,j])\n  y = {}\n", expression);
  Prepared prepared = prepare_problem(parse_problem(fmt::format("p 1x{}", columns)).value(), text).value();
  const Problem2d problem = prepared.view();
  for (std::int64_t j = 0; j < columns; ++j)
    store_f64(Type::F32, problem.arrays[0].entry(0, j), row[static_cast<std::size_t>(j) % row.size()]);
  run_reference(prepared.program, problem).value();
  std::vector<double> got;
  for (std::int64_t j = 0; j < columns; ++j) got.push_back(load_f64(Type::F32, problem.arrays[1].entry(0, j)));
  return got;
}

TEST(ComposedReductions, HaveTheirLimits) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t columns : {6, 256, 700}) {
    auto one = [&](const std::string& expression, std::vector<double> row) {
      return run_on(expression, std::move(row), columns)[0];
    };
    EXPECT_EQ(one("logsumexp(x)", {-inf}), -inf);
    EXPECT_EQ(one("logsumexp(x)", {1, inf, -inf}), inf);
    EXPECT_TRUE(std::isnan(one("logsumexp(x)", {1, nan, inf})));
    EXPECT_NEAR(one("logsumexp(x)", {1000, -inf}), 1000 + std::log(static_cast<double>(columns) / 2), 1e-3);
    for (const std::vector<double>& row : {std::vector<double>{nan}, {1, nan, 2}, {-inf, nan}, {nan, inf, 1}})
      for (const char* expression : {"variance(x)", "logsumexp(x)", "softmax(x)"})
        for (const double each : run_on(expression, row, columns)) EXPECT_TRUE(std::isnan(each)) << expression;
    EXPECT_TRUE(std::isnan(one("variance(x)", {-inf, 0})));
    const std::vector<double> shares = run_on("softmax(x)", {1, inf, -inf}, columns);
    EXPECT_TRUE(shares[0] == 0 && std::isnan(shares[1]) && shares[2] == 0);
    EXPECT_TRUE(std::isnan(one("softmax(x)", {-inf})));
    EXPECT_TRUE(std::isnan(one("softmax(x)", {inf, 0})));
    EXPECT_EQ(one("softmax(x)", {-inf, 5}), 0);
    EXPECT_TRUE(std::isnan(one("variance(x)", {inf, 0})));
    EXPECT_EQ(one("variance(x)", {3}), 0);
    // Far from 0, where the mean of squares less the square of the mean has no digits left.
    EXPECT_EQ(one("variance(x)", {4096, 4098}), 1);
  }
}

}  // namespace
}  // namespace trireme
