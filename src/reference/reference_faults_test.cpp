// The faults that the reference answers for, by their numbers.
#include <limits>

#include "reference/draft_for_test.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

TEST(Reference, fault_01_zero_rows) {
  Draft draft;
  Formula x = draft.operand("x", per_element), gamma = draft.operand("gamma", per_column);
  Spread wrapped = per_column;
  wrapped.row = draft.axis(0, 3);
  draft.result("y", per_element, x * gamma);
  draft.result("dgamma", per_column, column_sum(x * gamma));
  draft.result("dw", wrapped, column_sum(x));
  draft.result("dscale", one_value, column_sum(x), Type::BF16);
  Trial trial(draft, 0, 5);
  trial.run();
  for (const Buffer& buffer : trial.buffers.results)
    for (std::byte byte : buffer.memory) EXPECT_EQ(byte, std::byte{0});
}

TEST(Reference, fault_11_large_values_of_small_types) {
  // Squares beyond f16's range are f32 inside; a sum that overflows f32 is infinite, and y becomes x * 0.
  RmsNorm half(Type::F16);
  Trial trial(half, 2, 300);
  trial.fill("x", [](int i, int j) { return i == 0 ? 300 + j : 65504; })
      .fill("gamma", [](int, int) { return 1; })
      .run();
  for (int j = 0; j < 300; ++j) EXPECT_EQ(trial("y", 1, j), 1);
  RmsNorm brain(Type::BF16);
  Trial huge(brain, 1, 5);
  huge.fill("x", [](int, int) { return 3e38; }).fill("gamma", [](int, int) { return 1; }).run();
  EXPECT_EQ(huge("rstd", 0), 0);
  EXPECT_EQ(huge("y", 0, 3), 0);
}

TEST(Reference, fault_12_a_zero_row) {
  for (double eps : {0.0, 1e-12, 1e-45}) {
    RmsNorm draft(Type::F32, eps);
    Trial trial(draft, 1, 7);
    trial.fill("x", [](int, int) { return 0; }).fill("gamma", [](int, int) { return 1; }).run();
    float rounded = static_cast<float>(eps);  // 1e-45 is the smallest subnormal, and is kept
    EXPECT_EQ(trial("rstd", 0), 1.0f / std::sqrt(rounded));
    EXPECT_EQ(std::isnan(trial("y", 0, 0)), eps == 0);  // 0 * inf
  }
}

TEST(Reference, fault_13_nan_and_infinity_at_each_position) {
  Draft draft;
  Formula x = draft.operand("x", per_element);
  draft.result("largest", per_row, amax(x));
  draft.result("smallest", per_row, amin(x));
  draft.result("s", per_row, sum(x));
  for (std::int64_t n : {1, 3, 257})
    for (double special : {nan, inf, -inf})
      for (int at = 0; at < n; ++at) {
        Trial trial(draft, 1, n);
        trial.fill("x", [&](int, int j) { return j == at ? special : 1; }).run();
        double want_largest = std::isnan(special) || special > 0 || n == 1 ? special : 1;
        double want_smallest = std::isnan(special) || special < 0 || n == 1 ? special : 1;
        auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
        EXPECT_TRUE(same(trial("largest", 0), want_largest));
        EXPECT_TRUE(same(trial("smallest", 0), want_smallest));
        EXPECT_TRUE(same(trial("s", 0), special));
      }
}

TEST(Reference, minus_zero_lies_below_zero) {
  Draft draft;
  Formula x = draft.operand("x", per_element), y = draft.operand("y", per_element);
  draft.result("max", per_element, max(x, y));
  draft.result("min", per_element, min(x, y));
  draft.result("amax", per_row, amax(x));
  draft.result("amin", per_row, amin(x));
  Trial trial(draft, 1, 2);
  trial.fill("x", [](int, int j) { return j ? 0.0 : -0.0; }).fill("y", [](int, int j) { return j ? -0.0 : 0.0; }).run();
  for (int j = 0; j < 2; ++j) {
    EXPECT_FALSE(std::signbit(trial("max", 0, j)));
    EXPECT_TRUE(std::signbit(trial("min", 0, j)));
  }
  EXPECT_FALSE(std::signbit(trial("amax", 0)));
  EXPECT_TRUE(std::signbit(trial("amin", 0)));
}

TEST(Reference, fault_15_constant_rows_and_a_large_mean) {
  Draft draft;
  Formula x = draft.operand("x", per_element);
  Formula centred = x - mean(draft, x);
  draft.result("y", per_element, centred * rsqrt(mean(draft, centred * centred) + 1e-5));
  Trial trial(draft, 2, 1024);
  trial.fill("x", [](int i, int j) { return i ? 3.25 : 1e6 + (j % 2 ? 1 : -1); }).run();
  for (int j = 0; j < 1024; ++j) {
    EXPECT_NEAR(trial("y", 0, j), j % 2 ? 1 : -1, 1e-4);
    EXPECT_EQ(trial("y", 1, j), 0);
  }
}

TEST(Reference, fault_16_quantising) {
  Draft draft;
  Formula x = draft.operand("x", per_element);
  Formula scale = max(amax(abs(x)) / 127.0, 1e-30);
  draft.result("q", per_element, x / scale, Type::I8);
  draft.result("e", per_element, x, Type::F8E4M3);
  draft.result("back", per_element, round_to(x, Type::F8E4M3));
  Trial trial(draft, 3, 4);
  double rows[3][4] = {{0, -0.0, 0, 0}, {1e-44, -1e-44, 0, 0}, {-500, 448, inf, nan}};
  trial.fill("x", [&](int i, int j) { return rows[i][j]; }).run();
  for (int j = 0; j < 4; ++j) EXPECT_EQ(trial("q", 0, j), 0);
  EXPECT_EQ(trial("q", 1, 0), 0);
  EXPECT_EQ(trial("e", 2, 0), -448);
  EXPECT_EQ(trial("e", 2, 2), 448);
  EXPECT_TRUE(std::isnan(trial("e", 2, 3)));
  EXPECT_EQ(trial("q", 2, 3), 0);  // NaN is 0 in integers
  EXPECT_EQ(trial("back", 2, 2), 448);
}

TEST(Reference, fault_27_the_callers_mxcsr_does_not_matter) {
  Draft draft;
  Formula x = draft.operand("x", per_element);
  draft.result("y", per_element, x * 0.5);
  Trial trial(draft, 1, 2);
  trial.fill("x", [](int, int) { return 0x1p-126; });
  const FloatingPointState before = floating_point_state();
  set_floating_point_state(careless_state);
  trial.run();
  const FloatingPointState after = floating_point_state() & ~sticky_bits;
  set_floating_point_state(before);
  EXPECT_EQ(trial("y", 0, 1), 0x1p-127);
  EXPECT_EQ(after, careless_state);
}

}  // namespace
}  // namespace trireme
