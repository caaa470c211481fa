// Reductions inside groups of columns and over groups: the same bits on every device, and those of what they stand for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "same_bits_for_test.hpp"

namespace trireme {
namespace {

const std::string scaled =
    "p(x[i,j], g = 32) -> (y[i,j], scale[i, j / g], t[i])\n  scale = amax(abs(x), j / g) / 448\n"
    "  y = x / scale\n  t = sum(entries(scale)) + mean(entries(scale * scale))\n";
const std::string normal =
    "p(x[i,j], w[j], v[j / g], g = 32) -> (y[i,j], r[i, j / g])\n  r = 1 / sqrt(mean(x * x, j / g) + 1e-6)\n"
    "  y = x * (r * v) * w\n";
const std::string wrapped =
    "p(x[i,j], g = 32) -> (y[i,j], w[i, j % g], m[i, j % g])\n  w = sum(x, j % g)\n  m = amin(x, j % g)\n"
    "  y = rotate(w, 3) * m + amax(entries(w))\n";
const std::string nested =
    "p(x[i,j], g = 32) -> (y[i,j], c[i, j / g], d[j % g])\n  a = x / sum(abs(x), j / g)\n"
    "  b = a / sum(abs(a), j % g)\n  y = b - mean(b, j / g) * rotate(mean(b, j / g), 1) + sum(entries(sum(b, j / g)))\n"
    "  c = colsum(b)\n  d = colsum(b * sum(b, j / g))\n";

const std::string beside_the_row =
    "p(x[i,j], v[i, j / g], w[j % g], g = 32) -> (y[i,j], r[i], a[i, j / g], b[i, j % g])\n  r = mean(x * x)\n"
    "  h = x * rsqrt(r + 1)\n  a = amax(h * v, j / g)\n  b = sum(h - a, j % g) * w\n"
    "  y = h * a + b + amin(b, j / 7) * mean(h, j % 100)\n";

TEST(Groups, SameBitsOnEveryDevice) {
  const std::int64_t widths[] = {1, 16, 31, 64, 255, 256, 300, 1024, 4097};
  const std::int64_t sizes[] = {1, 2, 5, 16, 32, 64, 128, 256, 300, 1000};
  for (const std::string& text : {scaled, normal, wrapped, nested})
    for (std::int64_t columns : widths)
      for (std::int64_t g : sizes)
        if ((columns + g) % 2 == 0 || columns < 300) expect_same_bits(text, fmt::format("p 3x{} g={}", columns, g));
}

TEST(Groups, SameBitsForRandomShapesTypesAndThreads) {
  std::mt19937_64 random(22);
  const char* types[] = {"f32", "bf16", "f16", "f64"};
  const std::int64_t sizes[] = {3, 8, 16, 32, 64, 96, 100, 128, 250, 512};
  for (int k = 0; k < 24; ++k) {
    const std::string& text = *(std::vector{&scaled, &normal, &wrapped, &nested, &beside_the_row}[random() % 5]);
    const std::int64_t columns = 1 + static_cast<std::int64_t>(random() % (k % 4 ? 3000 : 70000));
    expect_same_bits(
        text, fmt::format("p {}x{} x={} g={}", 1 + random() % 9, columns, types[random() % 4], sizes[random() % 10]),
        {.threads = 1 + static_cast<int>(random() % 3)});
  }
}

TEST(Groups, AreWhatTheyStandFor) {
  auto same = [](const std::string& one, const std::string& other, const std::string& line) {
    EXPECT_EQ(reference_digest(one, line), reference_digest(other, line)) << one << other << line;
  };
  for (const char* columns : {"1", "7", "64", "300", "1025"}) {
    const std::string line = fmt::format("p 5x{}", columns);
    // A colsum into groups has the bits of their sums.
    same("p(x[i,j]) -> (y[i, j / 7])\n  y = sum(x, j / 7)\n", "p(x[i,j]) -> (y[i, j / 7])\n  y = colsum(x)\n", line);
    same("p(x[i,j]) -> (y[i, j % 7])\n  y = sum(x, j % 7)\n", "p(x[i,j]) -> (y[i, j % 7])\n  y = colsum(x)\n", line);
    // One group is the row; groups of one column are the elements.
    same("p(x[i,j]) -> (y[i,j])\n  y = sum(x, j / n)\n", "p(x[i,j]) -> (y[i,j])\n  y = sum(x)\n", line);
    same("p(x[i,j]) -> (y[i,j])\n  y = mean(x, j % 1)\n", "p(x[i,j]) -> (y[i,j])\n  y = mean(x)\n", line);
    same("p(x[i,j]) -> (y[i,j])\n  y = sum(x, j / 1)\n", "p(x[i,j]) -> (y[i,j])\n  y = x\n", line);
    same("p(x[i,j]) -> (y[i])\n  y = sum(entries(amax(x, j % n)))\n", "p(x[i,j]) -> (y[i])\n  y = sum(x)\n", line);
  }
}

TEST(Groups, ColumnSumsOfARowsOwnEntriesHaveTheSameBitsOnEveryDevice) {
  const std::string sums =
      "p(x[i,j], w[i, j / g], g = 32) -> (y[i,j], a[i, j / g], b[i, j % g], c[i, j / g], d[i, j % g], e[i, (j / 3) % "
      "g])\n"
      "  y = x * w\n  a = colsum(y)\n  b = colsum(x * x)\n  c = colmax(y)\n  d = colmax(x)\n  e = colsum(y)\n";
  for (int columns : {1, 31, 64, 257, 1000, 4097})
    for (int g : {1, 3, 32, 96, 300, 2000}) expect_same_bits(sums, fmt::format("p 5x{} g={}", columns, g));
}

}  // namespace
}  // namespace trireme
