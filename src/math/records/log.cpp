// log and log1p. Coefficients: tools/coefficients/fit.py.
#include <cmath>

#include "math/parts.hpp"

namespace trireme {
namespace parts {
namespace {

// k ln 2 + log(1 + f) for f in [-1/4, 1/2]: log(1 + f) = f + f^2 p(f).
// Degree 8 leaves 2^-27.4 in f32; degree 7 leaves 2^-25 and breaks the bound of log.
Formula log_of_parts(Type compute, Formula k, Formula f) {
  static constexpr double f32[] = {-0x1p-1,       0x1.5555acp-2,  -0x1.000082p-2, 0x1.996734p-3, -0x1.54d714p-3,
                                   0x1.2871e6p-3, -0x1.0e7482p-3, 0x1.b188bp-4,   -0x1.78c394p-5};
  static constexpr double f64[] = {
      -0x1.ffffffffffffbp-2, 0x1.55555555555c4p-2,  -0x1.0000000000dc2p-2, 0x1.9999999989669p-3,  -0x1.55555553fdf85p-3,
      0x1.24924929f91ffp-3,  -0x1.00000077fabf9p-3, 0x1.c71c70eccbb05p-4,  -0x1.99996e0d2f060p-4, 0x1.745ce3911078ep-4,
      -0x1.55598339884d5p-4, 0x1.3b1ff4aadc297p-4,  -0x1.2463be012b6b7p-4, 0x1.1011a4655c305p-4,  -0x1.ffefa19e81ea6p-5,
      0x1.f2ab01d286981p-5,  -0x1.e9a56852219f9p-5, 0x1.9faadaea950d8p-5,  -0x1.e0e0a95e9c3f4p-6, 0x1.07f5a11a804ddp-7};
  Formula p = compute == Type::F64 ? polynomial(f, f64) : polynomial(f, f32);
  return fma(k, format(compute).ln2, fma(f * f, p, f));
}

// The exponent field of `bits`, as a number.
Formula field(const Format& type, Formula bits) {
  Formula two_to_mantissa_bits = bits.number(type.magic / 1.5);
  return bits_or(bits_shift_right(bits, type.mantissa_bits), two_to_mantissa_bits);
}

// `value` for 0 < x < inf, else the limits: -inf at 0, NaN below, inf and NaN as they are.
Formula with_limits_of_log(Formula x, Formula value) {
  Formula zero = x.number(0);
  Formula below = select(equal(x, zero), x.number(-infinity), x.number(not_a_number));
  return select(x < x.number(infinity), select(zero < x, value, below), x);
}

}  // namespace

// 1 + x = 2^k (1 + f): f = 2^-k x + (2^-k - 1) loses nothing of a small x. 2^-k is built as 2^(2-k) / 4, because k
// reaches 128, where 2^-k is subnormal.
Formula log1p_any(Type compute, Formula x) {
  const Format& type = format(compute);
  Formula sum = 1.0 + x;
  Formula k = field(type, bits_add(sum, x.number(type.half_of_field))) - (type.magic / 1.5 + type.bias);
  Formula scale = bits_shift_left((type.magic + type.bias + 2) - k, type.mantissa_bits) * 0.25;
  Formula value = log_of_parts(compute, k, fma(scale, x, scale - 1.0));
  return with_sign_of(x, with_limits_of_log(sum, value));
}

}  // namespace parts

namespace records {
using namespace parts;

// x = 2^k m with m in [3/4, 3/2): adding half of the exponent's lowest bit carries into it where the mantissa is 1.5 or
// more. Subnormals are scaled to normal numbers first (4 of the instructions), limits are 6.
Function log() {
  return {
      .name = "log",
      .arity = 1,
      .formula = "ln x",
      .expand =
          [](Type compute, std::span<const Formula> args) {
            const Format& type = format(compute);
            Formula x = args[0];
            double two_to_mantissa_bits = type.magic / 1.5, unbias = two_to_mantissa_bits + type.bias;
            Formula subnormal = x < x.number(type.smallest_normal);
            Formula scaled = select(subnormal, x * two_to_mantissa_bits, x);
            Formula offset = select(subnormal, x.number(unbias + type.mantissa_bits), x.number(unbias));
            Formula raised = bits_add(scaled, x.number(type.half_of_field));
            Formula k = field(type, raised) - offset;
            Formula m = bits_add(bits_and(raised, x.number(type.mantissa_mask)), x.number(0.75));
            return with_limits_of_log(x, log_of_parts(compute, k, m - 1.0));
          },
      .derivative = [](std::span<const Formula> x, Formula, int) { return 1.0 / x[0]; },
      .oracle = [](const auto* x) { return std::log(x[0]); },
      .domain = "x >= 0; log(0) is -inf, below NaN",
      .unit = ErrorUnit::Ulp,
      .f32 = {1.1, 0.948},
      .f64 = {1.5, 1.29},
      .cost_f32 = 28,
      .cost_f64 = 39,
  };
}

Function log1p() {
  return {
      .name = "log1p",
      .arity = 1,
      .formula = "ln(1 + x)",
      .expand = [](Type compute, std::span<const Formula> x) { return log1p_any(compute, x[0]); },
      .derivative = [](std::span<const Formula> x, Formula, int) { return 1.0 / (1.0 + x[0]); },
      .oracle = [](const auto* x) { return std::log1p(x[0]); },
      .domain = "x >= -1; log1p(-1) is -inf, below NaN; log1p(-0) is -0",
      .unit = ErrorUnit::Ulp,
      .f32 = {1.5, 1.269},
      .f64 = {3, 1.29},
      .cost_f32 = 29,
      .cost_f64 = 40,
  };
}

}  // namespace records
}  // namespace trireme
