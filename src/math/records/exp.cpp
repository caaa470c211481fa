// exp and expm1. Coefficients: tools/coefficients/fit.py.
#include <cmath>

#include "math/parts.hpp"

namespace trireme {
namespace parts {

// Degree 6 leaves 2^-28.2; degree 5 would leave 2^-22.4, two ulp instead of one for one instruction less.
std::span<const double> exp_coefficients(Type compute) {
  static constexpr double f32[] = {1, 1, 0x1.fffffcp-2, 0x1.55548cp-3, 0x1.555858p-5, 0x1.123dep-7, 0x1.6ac75p-10};
  static constexpr double f64[] = {1,
                                   1,
                                   0x1.000000000000ap-1,
                                   0x1.55555555554fap-3,
                                   0x1.555555555087cp-5,
                                   0x1.1111111127bebp-7,
                                   0x1.6c16c1842a25fp-10,
                                   0x1.a01a012a56f2cp-13,
                                   0x1.a0199a0c3186ap-16,
                                   0x1.71df255289c37p-19,
                                   0x1.28ad72fa78acap-22,
                                   0x1.ad7f6fab5cc48p-26};
  return compute == Type::F64 ? std::span<const double>(f64) : std::span<const double>(f32);
}

// The middle of the last interval of length ln 2, whose power of two is the zero below the smallest exponent.
double exp_lowest(Type compute) { return compute == Type::F64 ? -0x1.6232bdd7abcd2p9 : -0x1.5d58ap6; }

// exp(x) = 2^(n-1) * 2 exp(r), x = n ln 2 + r. Taking the factor 2 into the polynomial keeps 2^(n-1) finite up to the
// largest result, and makes it +0 exactly where exp(x) < 2^-125.5 (f64: 2^-1021.5), so that no product is subnormal.
Formula exp_clamped(Type compute, Formula x) {
  const Format& type = format(compute);
  double shift = type.magic + type.bias - 1;
  Formula t = fma(x, type.log2_e, shift);
  Formula n = t - shift;
  Formula r = fma(n, -type.ln2_low, fma(n, -type.ln2_high, x));
  std::span<const double> c = exp_coefficients(compute);
  double twice[12];
  for (std::size_t k = 0; k < c.size(); ++k) twice[k] = 2 * c[k];
  return polynomial(r, std::span(twice, c.size())) * bits_shift_left(t, type.mantissa_bits);
}

// exp(-u) = 2^n exp(-v), so 1 - exp(-u) = (1 - 2^n) + 2^n (1 - exp(-v)), and 1 - exp(-v) = v - v^2 h(v).
// One product takes out n ln 2: its error is n 2^n ulp of ln 2, which is nothing beside 1 - 2^n.
// Where u comes in two parts, rest and -v^2 h(v) nearly cancel, and only the last sum rounds at the size of the result.
Formula one_minus_exp_of_minus(Type compute, Formula main, std::optional<Formula> rest) {
  static constexpr double f32[] = {-0x1.fffffep-2, 0x1.5554aap-3, -0x1.55579ep-5, 0x1.122c82p-7, -0x1.6ab1dep-10};
  static constexpr double f64[] = {-0x1.0000000000000p-1,  0x1.5555555555559p-3,   -0x1.555555555553fp-5,
                                   0x1.111111110f6dap-7,   -0x1.6c16c16c1f08ep-10, 0x1.a01a01afd3e04p-13,
                                   -0x1.a01a017bbf97dp-16, 0x1.71ddf87ebe1f4p-19,  -0x1.27e5363c2d2a4p-22,
                                   0x1.af5e74fb7a375p-26,  -0x1.1ee86d49e3726p-29};
  const Format& type = format(compute);
  double shift = type.magic + type.bias;
  Formula t = fma(rest ? main + *rest : main, -type.log2_e, shift);
  Formula n = t - shift;
  Formula reduced = fma(n, type.ln2, main);
  Formula v = rest ? reduced + *rest : reduced;
  Formula scale = bits_shift_left(t, type.mantissa_bits);
  Formula h = compute == Type::F64 ? polynomial(v, f64) : polynomial(v, f32);
  Formula inner = rest ? reduced + fma(v * v, h, *rest) : fma(v * v, h, v);
  return fma(scale, inner, 1.0 - scale);
}

}  // namespace parts

namespace records {
using namespace parts;

Function exp() {
  return {
      .name = "exp",
      .arity = 1,
      .formula = "e^x",
      .expand =
          [](Type compute, std::span<const Formula> x) {
            double highest = compute == Type::F64 ? 710 : 89;
            return exp_clamped(compute, min(max(x[0], exp_lowest(compute)), highest));
          },
      .derivative = [](std::span<const Formula>, Formula y, int) { return y; },
      .oracle = [](const auto* x) { return std::exp(x[0]); },
      .domain = "all x; +0 where the value is below 2^-125.5 (f64: 2^-1021.5)",
      .unit = ErrorUnit::Ulp,
      .f32 = {1.1, 0.892},
      .f64 = {1.5, 0.912},
      .cost_f32 = 14,
      .cost_f64 = 19,
  };
}

// expm1(x) = 2 ((2^(n-1) - 1/2) + 2^(n-1) expm1(r)); the factor 2 keeps the power finite. n is rounded 0.085 lower than
// to nearest, so that n = 0 for results in [-1/4, 1/2): just there, on both sides, the ulp of the result doubles and
// hides the error of expm1(r).
Function expm1() {
  return {
      .name = "expm1",
      .arity = 1,
      .formula = "e^x - 1",
      .expand =
          [](Type compute, std::span<const Formula> args) {
            static constexpr double f32[] = {0x1p-1,        0x1.55555ep-3,  0x1.55554ep-5,
                                             0x1.10ff06p-7, 0x1.6c9ad6p-10, 0x1.c32ef2p-13};
            static constexpr double f64[] = {0x1.0000000000000p-1,  0x1.5555555555554p-3,  0x1.5555555555634p-5,
                                             0x1.11111111119b6p-7,  0x1.6c16c16bac688p-10, 0x1.a01a019cf4fb7p-13,
                                             0x1.a01a0443647f2p-16, 0x1.71de38621f844p-19, 0x1.27dd7c1f61403p-22,
                                             0x1.aec9d13c0cd3bp-26, 0x1.2eddb69c6986cp-29};
            bool wide = compute == Type::F64;
            const Format& type = format(compute);
            Formula x = min(max(args[0], wide ? -40.0 : -20.0), wide ? 710.0 : 89.0);
            double shift = type.magic + type.bias - 1;
            Formula t = fma(x, type.log2_e, -0x1.5cp-4) + shift;
            Formula n = t - shift;
            Formula r = fma(n, -type.ln2_low, fma(n, -type.ln2_high, x));
            Formula scale = bits_shift_left(t, type.mantissa_bits);
            Formula h = wide ? polynomial(r, f64) : polynomial(r, f32);
            Formula half = fma(scale, fma(r * r, h, r), scale - 0.5);
            return with_sign_of(args[0], half * 2.0);
          },
      .derivative = [](std::span<const Formula>, Formula y, int) { return y + 1.0; },
      .oracle = [](const auto* x) { return std::expm1(x[0]); },
      .domain = "all x; expm1(-0) is -0, expm1(-inf) is -1",
      .unit = ErrorUnit::Ulp,
      .f32 = {1.5, 1.322},
      .f64 = {3, 1.2},
      .cost_f32 = 20,
      .cost_f64 = 25,
  };
}

}  // namespace records
}  // namespace trireme
