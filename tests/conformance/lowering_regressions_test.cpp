// Programs that were once lowered wrongly, each by its fault, on every device of this machine.
#include <gtest/gtest.h>

#include "same_bits_for_test.hpp"

namespace trireme {
namespace {

TEST(LoweringRegressions, a_column_sum_of_a_constant) {
  for (const char* line : {"p 5x300", "p 1x7", "p 0x16"})
    expect_same_bits(
        "p(x[i,j], eps = 0.1) -> (y[i,j], n_rows[j], scaled[j])\n"
        "  y = x\n  n_rows = colsum(1)\n  scaled = colsum(eps)\n",
        line);
}

TEST(LoweringRegressions, columns_divided_and_then_wrapped) {
  for (const char* line : {"p 3x7", "p 3x64", "p 3x300", "p 2x1030 x=bf16"})
    expect_same_bits("p(x[i,j], w[(j / 3) % 5]) -> (y[i,j])\n  y = x * w\n", line);
}

// The row's end comes between two columns of a wrapped index that are no neighbours.
TEST(LoweringRegressions, columns_wrapped_and_rotated) {
  for (const char* line : {"p 3x64", "p 3x512", "p 2x301 x=bf16", "p 2x1030 x=f64"})
    expect_same_bits("p(x[i,j], w[j % 6]) -> (y[i,j])\n  y = x * rotate(w, 3)\n", line);
}

// NaN is 0 in integers, from both compute types: PTX's conversion makes the least integer of an f64's.
TEST(LoweringRegressions, nan_stored_as_an_integer) {
  for (const char* line :
       {"p 3x40 x=f32 y=i8 r=i32 s=i32", "p 3x40 x=f64 y=i8 r=i32 s=i32", "p 2x7 x=f64 y=i32 r=i8 s=i8"})
    expect_same_bits(
        "p(x[i,j]) -> (y[i,j], r[i], s[j])\n"
        "  y = select(j < 5, nan, x * 100)\n  r = sum(select(i < 1, nan, 1))\n  s = colsum(cast(y, y) / select(j < "
        "9, "
        "0, 1) * 0)\n",
        line);
}

// 32 lanes of 16 bytes hold two stripes of a one-byte type: copies into the ring overlapped.
TEST(LoweringRegressions, columns_of_one_byte) {
  for (const char* text : {"p(x[i,j]) -> (total[j])\n  total = colsum(x)\n",
                           "p(x[i,j], g[j]) -> (y[i,j], total[j])\n  y = x * g\n  total = colsum(x)\n",
                           "p(x[i,j], g[j]) -> (y[i,j])\n  y = x * g\n",
                           "p(x[i,j], g[j]) -> (y[i,j], total[j])\n  y = x * g * sum(x)\n  total = colsum(x)\n"})
    for (const char* line :
         {"p 5x512 x=i8", "p 3x768 x=f8e4m3", "p 300x1024 x=i8", "p 2x16384 x=f8e5m2", "p 2x256 x=i8"})
      expect_same_bits(text, line);
}

// Where a kernel is made for any number of columns, whatever else than a quotient was taken for one.
TEST(LoweringRegressions, rows_divided_and_wrapped_by_arithmetic_of_n) {
  for (const char* line : {"p 130x2 y=f32:1,130", "p 7x3", "p 40x6 x=f32:-6", "p 33x300 y=f32:1,40 x=bf16"})
    for (const char* by : {"i / (n * 2)", "i / (n + 1)", "i % (n - 1)", "(i / 2) % (-n + 2 * n)", "i / (n * 3 / n)"})
      expect_same_bits(fmt::format("p(x[i,j], w[{}]) -> (y[i,j])\n  y = x + w\n", by), line);
}

std::string rotated(const std::string& value) {
  return "p(x[i,j], w[j], t[i,j], k = 3) -> (y[i,j])\n  y = " + value + "\n";
}

// The second amount took the place of the first, of which it is a part.
TEST(LoweringRegressions, fault_33_rotations_by_n_and_by_half_of_it) {
  for (const char* line : {"p 3x12", "p 2x300", "p 2x1030 x=bf16"})
    for (const char* both : {"rotate(x, n) + 2 * rotate(x, n / 2)", "rotate(x, n / 2) - rotate(x, n / 2 + n)",
                             "rotate(x, n) * rotate(w, -n) + rotate(x * w, n - 1) - rotate(j, n / 2 - 1)"})
      expect_same_bits(rotated(both), line);
}

TEST(LoweringRegressions, fault_34_rotations_by_arithmetic) {
  for (const char* line :
       {"p 3x12", "p 2x300", "p 2x1032 x=f16 w=bf16", "p 1x12 x=f64 k=-7", "p 2x12 k=9007199254740900"})
    for (const char* by : {"n - 1", "n * 2", "k + n", "n * n", "n - n", "n / n", "k - (n - 5) * 2", "(n + n) / 2 - 1"})
      expect_same_bits(rotated("rotate(x, " + std::string(by) + ") - rotate(w, 1)"), line);
}

TEST(LoweringRegressions, fault_52_rotations_back_and_by_quotients) {
  for (const char* line : {"p 3x12", "p 2x300", "p 2x1032 x=bf16", "p 1x12 x=f64 k=-3"})
    for (const char* by : {"-n / 2", "3 * n / 4", "n / 4 * 3", "n / -3", "-(n / 3 - 5)", "(2 - n) / 2",
                           "n / (1 - k) * 4", "-5000000000", "5000000000"})
      expect_same_bits(rotated("rotate(x, " + std::string(by) + ")"), line);
}

// Compared as integers before rotations sank to the loads, and as f32 after it.
TEST(LoweringRegressions, rotated_comparisons_of_integers) {
  for (const char* line : {"p 3x12 t=i32", "p 2x300 t=i32", "p 2x301 t=i32 x=bf16"})
    for (const char* value :
         {"rotate(select(j < 5, x, 0), 2)", "rotate(select(t <= 1, x, w), n - 1)", "rotate(select(t == j, x, w), 3)",
          "select(rotate(t, 1) < t, x, w)", "rotate(select(and(i < t, not(t == n)), x, w), 5) + rotate(t, 1)"})
      expect_same_bits(rotated(value), line);
}

// Two registers of i64 elements are two stores; and a mask that was spilled goes to a general register by way of
// another.
TEST(LoweringRegressions, i64_results) {
  for (const char* line : {"p 9x300 y=i64", "p 3x1032 x=f64 y=i64", "p 2x1 y=i64", "p 5x37 x=bf16 y=i64"})
    expect_same_bits("p(x[i,j]) -> (y[i,j])\n  y = x * 100 + amin(x)\n", line);
  expect_same_bits("p(x[i,j]) -> (s[])\n  s = colsum(relu(amin(select(1 != x, x, x))))\n",
                   "p 2x1 x=f32 dx=i64 ds=f32 backward");
}

}  // namespace
}  // namespace trireme
