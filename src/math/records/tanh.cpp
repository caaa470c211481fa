// Hyperbolic tangent. Coefficients: tools/coefficients/fit.py.
#include <cmath>

#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

// f32: x + x^3 p(x^2) below 0.65, above it 1 - 2 / (1 + exp(2 |x|)). The quotient of expm1 alone, or of two
// polynomials, takes 22 to 28 instructions but rounds three times beside a result near 1: 2 to 3 ulp. f64 takes that
// quotient.
Function tanh() {
  return {
      .name = "tanh",
      .arity = 1,
      .formula = "tanh x",
      .expand =
          [](Type compute, std::span<const Formula> x) {
            Formula y = abs(x[0]);
            if (compute == Type::F64) {
              Formula m = one_minus_exp_of_minus(compute, min(y, 20.0) * 2.0);
              return with_sign_of(x[0], m / (2.0 - m));
            }
            static constexpr double exp2[] = {
                1, 0x1.62e432p-1, 0x1.ebfbe6p-3, 0x1.c6ada8p-5, 0x1.3b21bap-7, 0x1.5fbcfp-10, 0x1.4bf5ap-13};
            static constexpr double small[] = {-0x1.555524p-2, 0x1.1103fp-3, -0x1.b7cfb2p-5, 0x1.4f5d36p-6,
                                               -0x1.6968fap-8};
            Formula low = min(y, 10.0);
            double shift = f32.magic + f32.bias;
            Formula t = fma(low, 2 * f32.log2_e, shift);
            Formula f = fma(low, 2 * f32.log2_e, shift - t);
            Formula quotient =
                reciprocal_from_one(fma(polynomial(f, exp2), bits_shift_left(t, f32.mantissa_bits), 1.0));
            Formula square = low * low;
            Formula near_zero = fma(low, square * polynomial(square, small), low);
            Formula value = select(y < y.number(0x1.4cccccp-1), near_zero, fma(quotient, -2.0, 1.0));
            return with_sign_of(x[0], value);
          },
      .derivative = [](std::span<const Formula>, Formula y, int) { return 1.0 - y * y; },
      .oracle = [](const auto* x) { return std::tanh(x[0]); },
      .domain = "all x; tanh(-0) is -0",
      .unit = ErrorUnit::Ulp,
      .f32 = {1.5, 1.427},
      .f64 = {3, 2.62},
      .cost_f32 = 29,
      .cost_f64 = 33,
  };
}

}  // namespace trireme::records
