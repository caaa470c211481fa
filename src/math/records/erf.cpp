// erf, gelu and gelu's slope. Coefficients: tools/coefficients/fit.py.
#include <cmath>

#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;
namespace {

constexpr double sqrt_half = 0x1.6a09e667f3bccp-1;
constexpr double two_over_sqrt_pi = 0x1.20dd750429b6dp0;
constexpr double one_over_sqrt_2pi = 0x1.9884533d43651p-2;

// 2^(y w) 2^-1 for y w <= 0, +0 below 2^-126.5: the product is never rounded. Judged absolutely, so degree 5 is enough.
Formula half_exp2_of_product(Formula y, Formula w) {
  static constexpr double exp2[] = {0x1.000002p0,  0x1.62e438p-1, 0x1.ebf80ap-3,
                                    0x1.c6a2ccp-5, 0x1.3d59f8p-7, 0x1.656ee8p-10};
  double shift = f32.magic + f32.bias - 1;
  Formula t = fma(y, w, shift);
  Formula f = fma(y, w, shift - t);
  return polynomial(f, exp2) * bits_shift_left(t, f32.mantissa_bits);
}

// f64: x + x p(x^2) below 1, 1 - exp(-u(|x|)) above, u a polynomial around 2.5.
Formula erf_f64(Formula x) {
  static constexpr double small[] = {0x1.06eba8214db69p-3,   -0x1.812746b0379e6p-2,  0x1.ce2f21a042b20p-4,
                                     -0x1.b82ce3128499cp-6,  0x1.565bcd0db02cap-8,   -0x1.c02db3d8ecdefp-11,
                                     0x1.f9a321a116808p-14,  -0x1.f4d1df38c9bb6p-17, 0x1.b9def197fcb7bp-20,
                                     -0x1.5f1d36940d9f2p-23, 0x1.f7a41069a97e9p-27,  -0x1.386abbd0bfdbdp-30,
                                     0x1.05799e9eddce0p-34};
  static constexpr double large[] = {0x1.f3a2dc8691b91p+2,   0x1.56925248da93cp+2,   0x1.e3460a18c560ep-1,
                                     0x1.63cc1da79f29ap-7,   -0x1.1bd558ec25df5p-9,  0x1.b9613960ac4e8p-12,
                                     -0x1.4317328e75695p-14, 0x1.ac03d1162b38dp-17,  -0x1.dadb837f05283p-20,
                                     0x1.4ef1dd269cfc3p-23,  0x1.b140437b5b0c3p-27,  -0x1.77ab6a5269b25p-27,
                                     0x1.e299f5a370c1ep-29,  -0x1.ce7f5a603b6adp-31, 0x1.66a65f4a23012p-33,
                                     -0x1.95212f5ed06f4p-36, 0x1.5af08fc3919acp-40,  0x1.0c4c8305d3075p-42,
                                     -0x1.c51b6e250e8c8p-43, 0x1.100e4ce582a8ep-43,  -0x1.95cbaf2123e0bp-46};
  Formula y = abs(x), low = min(y, 5.95), square = low * low;
  Formula near_zero = fma(low, polynomial(square, small), low);
  Formula beyond = one_minus_exp_of_minus(Type::F64, polynomial(low - 2.5, large));
  return with_sign_of(x, select(y < y.number(1), near_zero, beyond));
}

}  // namespace

// f32: one formula for all x. u = |x| (1 + q(|x|)) has the relative error that 1 - exp(-u) keeps near 0, and q(0) is
// only 0.128, so that its rounding hardly counts. Degree 8 leaves 2^-27.8, degree 7 2^-24.6.
Function erf() {
  return {
      .name = "erf",
      .arity = 1,
      .formula = "2 / sqrt(pi) * integral of e^(-t^2) from 0 to x",
      .expand =
          [](Type compute, std::span<const Formula> x) {
            static constexpr double q[] = {0x1.06eba8p-3,   0x1.45f3p-1,     0x1.a4f8c4p-4,
                                           -0x1.39b7cep-6,  -0x1.636f0ap-13, 0x1.b7421ep-10,
                                           -0x1.4e24d8p-11, 0x1.f27b44p-14,  -0x1.3aef8ep-17};
            if (compute == Type::F64) return erf_f64(x[0]);
            Formula y = min(abs(x[0]), 4.0);
            return with_sign_of(x[0], one_minus_exp_of_minus(compute, y, y * polynomial(y, q)));
          },
      .derivative = [](std::span<const Formula> x, Formula,
                       int) { return two_over_sqrt_pi * call("exp", {-(x[0] * x[0])}); },
      .oracle = [](const auto* x) { return std::erf(x[0]); },
      .domain = "all x; erf(-0) is -0",
      .unit = ErrorUnit::Ulp,
      .f32 = {1.5, 1.43},
      .f64 = {3, 1.6},
      .cost_f32 = 28,
      .cost_f64 = 59,
  };
}

// f32: max(x, 0) - |x| P with P = 2^(-1 - |x| q(|x|)) the normal distribution below -|x|: no sign to mirror, and the
// tail on the left does not cancel. From 5.6 on P falls faster than it should, to +0 at 9.96.
Function gelu() {
  return {
      .name = "gelu",
      .arity = 1,
      .formula = "0.5 * x * (1 + erf(x / sqrt(2)))",
      .expand =
          [](Type compute, std::span<const Formula> args) {
            if (compute == Type::F64) {
              Formula x = max(args[0], -10.0);
              Formula half = x * 0.5;
              return fma(half, erf_f64(x * sqrt_half), half);
            }
            static constexpr double q[] = {0x1.26aed4p0,   -0x1.d63ac2p-2,  0x1.ae0a8ap-5,   0x1.ced388p-8,
                                           0x1.1d498cp-13, -0x1.872de4p-13, -0x1.4ae4c6p-15, -0x1.7d30aep-19};
            Formula x = args[0], y = max(minus_abs(x), -0x1.3e9p3);
            return fma(y, half_exp2_of_product(y, polynomial(y, q)), max(x, -0.0));
          },
      .derivative = [](std::span<const Formula> x, Formula, int) { return call("gelu_slope", {x[0]}); },
      .oracle =
          [](const auto* x) {
            using T = std::remove_cvref_t<decltype(*x)>;
            return x[0] < -200 ? -T(0) : x[0] / 2 * std::erfc(-x[0] * std::sqrt(T(0.5)));
          },
      .domain = "all x; gelu(-inf) is 0",
      .unit = ErrorUnit::Argument,
      .f32 = {0x1p-22, 0x1.bdp-24},
      .f64 = {0x1p-50, 0x1.a3p-53},
      .cost_f32 = 21,
      .cost_f64 = 63,
  };
}

// With y = |x|, P the normal distribution below -y and d its density: P - y d for x < 0, one minus that above.
// f32 takes it as exp(-y^2 / 2) m(y): one exponential instead of the two of P and d, 20 instructions less.
Function gelu_slope() {
  return {
      .name = "gelu_slope",
      .arity = 1,
      .formula = "the derivative of gelu(x)",
      .expand =
          [](Type compute, std::span<const Formula> args) {
            Formula x = args[0];
            if (compute == Type::F64) {
              Formula y = min(max(x, -38.0), 38.0);
              Formula density = exp_clamped(compute, max(y * y * -0.5, exp_lowest(compute))) * one_over_sqrt_2pi;
              return fma(y, density, fma(erf_f64(y * sqrt_half), 0.5, 0.5));
            }
            static constexpr double m[] = {0x1.fffffcp-1,  0x1.988398p0,   0x1.ffd522p-2, 0x1.0f65fcp-2,
                                           0x1.f50dfep-4,  0x1.8e8462p-5,  0x1.045d2cp-6, 0x1.032680p-8,
                                           0x1.64e21ep-11, 0x1.280604p-14, 0x1.b735d4p-19};
            Formula y = max(minus_abs(x), -0x1.a6ep3);
            Formula left = half_exp2_of_product(y, y * (-0.5 * f32.log2_e)) * polynomial(y, m);
            return select(x < x.number(0), left, 1.0 - left);
          },
      .derivative =
          [](std::span<const Formula> args, Formula, int) {
            Formula x = min(max(args[0], -40.0), 40.0), square = x * x;
            return (2.0 - square) * (one_over_sqrt_2pi * call("exp", {-0.5 * square}));
          },
      .oracle =
          [](const auto* x) {
            using T = std::remove_cvref_t<decltype(*x)>;
            if (std::fabs(x[0]) > 200) return x[0] < 0 ? T(0) : T(1);
            T density = std::exp(-x[0] * x[0] / 2) / std::sqrt(2 * std::acos(T(-1)));
            return std::erfc(-x[0] * std::sqrt(T(0.5))) / 2 + x[0] * density;
          },
      .domain = "all x; 0 at -inf, 1 at inf",
      .unit = ErrorUnit::One,
      .f32 = {0x1p-22, 0x1.9fp-23},
      .f64 = {0x1p-51, 0x1.4bp-52},
      .cost_f32 = 27,
      .cost_f64 = 85,
  };
}

}  // namespace trireme::records
