// Divisions without a slow path (targets/ptx/machine.cpp): 1 / d for every f32 from 1 to 2^126 and for what lies
// beyond, and quotients by constants, subnormal ones, infinities and zeros of both signs among them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "devices/cuda/cuda_device.hpp"
#include "ir/build.hpp"
#include "language/parse.hpp"
#include "passes/passes.hpp"

namespace trireme::cuda {
namespace {

TEST(RealDevice, ReciprocalsFromOneAreRounded) {
  Binding binding{.types = {{"x", Type::F32}, {"y", Type::F32}}};
  Program program = prepare(parse("p(x[i,j]) -> (y[i,j])\n  y = x\n").value(), binding).value().expanded;
  Output& result = program.results[0];
  result.value = reciprocal_from_one(Formula{&program, result.value}).id;

  if (std::string reason = missing(0); !reason.empty()) GTEST_SKIP() << "no GPU: " << reason;

  constexpr std::int64_t rows = 1 << 13, columns = 1 << 13, count = rows * columns;  // 8 exponents at a time
  auto executable = compile(program, {.rows = rows, .columns = columns, .alignment = 4}, 0).value();
  std::vector<float> x(count), y(count);
  auto run = [&] {
    const Array arrays[] = {{x.data(), Type::F32, columns, 1}, {y.data(), Type::F32, columns, 1}};
    double constant = 0;
    ASSERT_TRUE(executable->run({rows, columns, {&constant, 1}, arrays}, {}));
  };
  for (std::uint32_t first = 127; first < 253; first += 8) {
    std::uint32_t bits = first << 23;
    for (float& value : x) value = std::bit_cast<float>(std::min(bits++, (253u << 23) - 1));
    run();
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < count; ++k) wrong += y[k] != 1 / x[k];
    ASSERT_EQ(wrong, 0) << "exponents from " << first - 127 << " on";
  }
  std::fill(x.begin(), x.end(), std::numeric_limits<float>::infinity());
  x[1] = std::numeric_limits<float>::quiet_NaN();
  run();
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y[0]), 0u);
  EXPECT_NE(y[1], y[1]);
}

TEST(RealDevice, QuotientsByConstantsAreRounded) {
  constexpr std::int64_t rows = 1 << 11, columns = 1 << 13, count = rows * columns;
  for (float divisor : {3.0f, 6.0f, 49.0f, 2880.0f, -7168.0f, 12288.0f, 16777215.0f}) {
    Binding binding{.types = {{"x", Type::F32}, {"y", Type::F32}}};
    std::string text = "p(x[i,j]) -> (y[i,j])\n  y = x / (" + std::to_string(divisor) + ")\n";
    Program program = prepare(parse(text).value(), binding).value().expanded;
    if (std::string reason = missing(0); !reason.empty()) GTEST_SKIP() << "no GPU: " << reason;
    auto executable = compile(program, {.rows = rows, .columns = columns, .alignment = 4}, 0).value();
    std::vector<float> x(count), y(count);
    std::uint32_t bits = 12345;
    for (float& value : x) value = std::bit_cast<float>(bits = bits * 1664525 + 1013904223);
    // Small multiples of the least number and of the divisor: subnormal quotients, exact ones and ties.
    for (std::int64_t k = 0; k < count / 4; ++k) x[k] = std::bit_cast<float>(static_cast<std::uint32_t>(k));
    for (std::int64_t k = 0; k < 1 << 16; ++k) x[count / 2 + k] = static_cast<float>(k) * divisor;
    const float infinity = std::numeric_limits<float>::infinity();
    for (float special : {0.0f, -0.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()})
      x[count - 1 - (bits++ % 1000)] = special;
    const Array arrays[] = {{x.data(), Type::F32, columns, 1}, {y.data(), Type::F32, columns, 1}};
    double constant = 0;
    ASSERT_TRUE(executable->run({rows, columns, {&constant, 1}, arrays}, {}));
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      float wanted = x[k] / divisor;
      wrong += std::isnan(wanted) ? !std::isnan(y[k])
                                  : std::bit_cast<std::uint32_t>(y[k]) != std::bit_cast<std::uint32_t>(wanted);
    }
    EXPECT_EQ(wrong, 0) << divisor;
  }
}

}  // namespace
}  // namespace trireme::cuda
