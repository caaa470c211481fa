// sigmoid, silu and gelu_tanh: each one exponential and one reciprocal. Coefficients: tools/coefficients/fit.py.
//
// sigmoid(x) is 1 / (1 + exp(-x)) on both sides of 0: where exp(-x) is large the sum keeps its relative error, and
// where it would pass 2^125.5 (f64: 2^1021.5) the power of two becomes infinite and the result +0, never subnormal.
// Mirroring exp(-|x|) instead costs 4 instructions more and is no more accurate.
#include <cmath>

#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;
namespace {

// Below this, x * log2(e) rounds to the first exponent that overflows.
double sigmoid_lowest(Type compute) { return exp_lowest(compute); }

// 1 / (1 + exp(-x)) for x that max(x, sigmoid_lowest) has passed.
// exp(-x) = 2^(n+2) * exp(r) / 4 is infinite from n = 126 on, where the exponent field n + 2 + 127 is all ones.
Formula sigmoid_above_lowest(Type compute, Formula x) {
  const Format& type = format(compute);
  Formula low = min(x, compute == Type::F64 ? 40.0 : 20.0);  // beyond, exp(-x) is nothing beside 1
  double shift = type.magic + type.bias + 2;
  Formula t = fma(low, -type.log2_e, shift);
  Formula n = t - shift;
  Formula minus_r = fma(n, type.ln2_low, fma(n, type.ln2_high, low));
  std::span<const double> c = exp_coefficients(compute);
  double quarter[12];
  for (std::size_t k = 0; k < c.size(); ++k) quarter[k] = (k % 2 ? -0.25 : 0.25) * c[k];
  Formula p = polynomial(minus_r, std::span(quarter, c.size()));
  return reciprocal_from_one(fma(p, bits_shift_left(t, type.mantissa_bits), 1.0));
}

// 1 / (1 + 2^(x w)) in f32, where the error is judged beside |x|: the product x w is never rounded, but w is, and 2^f
// has degree 5 (2^-23). Two instructions less than the sigmoid.
Formula sigmoid_of_product(Formula x, Formula w) {
  static constexpr double quarter[] = {0x1.000002p-2, 0x1.62e438p-3, 0x1.ebf80ap-5,
                                       0x1.c6a2ccp-7, 0x1.3d59f8p-9, 0x1.656ee8p-12};
  double shift = f32.magic + f32.bias + 2;
  Formula t = fma(x, w, shift);
  Formula f = fma(x, w, shift - t);
  return reciprocal_from_one(fma(polynomial(f, quarter), bits_shift_left(t, f32.mantissa_bits), 1.0));
}

template <typename T>
T exact_sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// x sigmoid(z), which is 0 at x = -inf.
template <typename T>
T gated(T x, T z) {
  return x < -1e4f ? -T(0) : x * exact_sigmoid(z);
}

constexpr double tanh_slope = 0x1.9884533d43651p0;   // 2 sqrt(2 / pi)
constexpr double tanh_cubic = 0x1.2444f2a4d8b4bp-4;  // 0.044715 of it

}  // namespace

Function sigmoid() {
  return {
      .name = "sigmoid",
      .arity = 1,
      .formula = "1 / (1 + e^-x)",
      .expand =
          [](Type compute, std::span<const Formula> x) {
            return sigmoid_above_lowest(compute, max(x[0], sigmoid_lowest(compute)));
          },
      .derivative = [](std::span<const Formula>, Formula y, int) { return y * (1.0 - y); },
      .oracle = [](const auto* x) { return exact_sigmoid(x[0]); },
      .domain = "all x; +0 where the value is below 2^-125.5 (f64: 2^-1021.5)",
      .unit = ErrorUnit::Ulp,
      .f32 = {2.5, 2.481},
      .f64 = {3, 2.41},
      .cost_f32 = 18,
      .cost_f64 = 26,
  };
}

// The clamp from below serves the product too: at -inf it is -87.3 * 0.
Function silu() {
  return {
      .name = "silu",
      .arity = 1,
      .formula = "x * sigmoid(x)",
      .expand =
          [](Type compute, std::span<const Formula> args) {
            Formula x = max(args[0], sigmoid_lowest(compute));
            if (compute == Type::F64) return x * sigmoid_above_lowest(compute, x);
            return x * sigmoid_of_product(min(x, 20.0), x.number(-f32.log2_e));
          },
      .derivative =
          [](std::span<const Formula> x, Formula y, int) {
            Formula s = call("sigmoid", {x[0]});
            return s + y * (1.0 - s);
          },
      .oracle = [](const auto* x) { return gated(x[0], x[0]); },
      .domain = "all x; silu(-inf) is -0",
      .unit = ErrorUnit::Argument,
      .f32 = {0x1p-22, 0x1.37p-23},
      .f64 = {0x1p-50, 0x1.3dp-52},
      .cost_f32 = 17,
      .cost_f64 = 27,
  };
}

// 0.5 x (1 + tanh(u)) is x sigmoid(2 u).
Function gelu_tanh() {
  return {
      .name = "gelu_tanh",
      .arity = 1,
      .formula = "0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))",
      .expand =
          [](Type compute, std::span<const Formula> args) {
            if (compute == Type::F64) {
              Formula x = max(args[0], -21.1455);
              return x * sigmoid_above_lowest(compute, x * fma(x * x, tanh_cubic, tanh_slope));
            }
            Formula x = max(args[0], -0x1.4008p3), low = min(x, 8.0);
            return x * sigmoid_of_product(low, fma(low * low, -0x1.a5a7dp-4, -0x1.26aec2p1));
          },
      .derivative =
          [](std::span<const Formula> args, Formula, int) {
            Formula x = min(max(args[0], -16.0), 16.0), square = x * x;
            Formula s = call("sigmoid", {x * (tanh_slope + tanh_cubic * square)});
            return s + x * (s * (1.0 - s)) * (tanh_slope + 3 * tanh_cubic * square);
          },
      .oracle =
          [](const auto* x) {
            using T = std::remove_cvref_t<decltype(*x)>;
            T slope = 2 * std::sqrt(2 / std::acos(T(-1))), cubic = slope * T(44715) / 1000000;
            return gated(x[0], x[0] * (slope + cubic * x[0] * x[0]));
          },
      .domain = "all x; gelu_tanh(-inf) is -0",
      .unit = ErrorUnit::Argument,
      .f32 = {0x1p-22, 0x1.3bp-23},
      .f64 = {0x1p-50, 0x1.35p-52},
      .cost_f32 = 19,
      .cost_f64 = 30,
  };
}

}  // namespace trireme::records
