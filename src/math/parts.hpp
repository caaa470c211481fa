// The parts that records share.
//
// Integers cross between floats and bits by adding 1.5 * 2^23 (f64: 1.5 * 2^52): the sum's ulp is 1, so its low bits
// are the nearest integer. With the exponent's bias added too, shifting those bits into the exponent field is 2^n.
#pragma once
#include <limits>
#include <optional>
#include <span>

#include "math/functions.hpp"

namespace trireme::parts {

// A number of an oracle's type, which its argument has.
template <typename T>
T number_like(const T*, int value) {
  return static_cast<T>(value);
}

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double log2_e = 0x1.71547652b82fep0;
inline constexpr double ln2 = 0x1.62e42fefa39efp-1;

// Numbers of a compute type.
struct Format {
  int mantissa_bits;
  double magic;              // 1.5 * 2^mantissa_bits
  double bias;               // of the exponent field
  double log2_e;             // rounded to the type, so that the same value is multiplied everywhere
  double ln2;                // rounded
  double ln2_high, ln2_low;  // n * ln2_high is exact for every exponent n; both are positive
  double smallest_normal;
  double mantissa_mask;  // the number whose bits are the mantissa field, all ones
  double half_of_field;  // the number whose bits are the exponent field's lowest bit, halved
};

inline constexpr Format f32 = {23,          0x1.8p23,       127,      0x1.715476p0,    0x1.62e43p-1,
                               0x1.62e4p-1, 0x1.7f7d1cp-20, 0x1p-126, 0x1.fffffcp-127, 0x1p-127};
inline constexpr Format f64 = {
    52,       0x1.8p52, 1023, log2_e, ln2, 0x1.62e42fefap-1, 0x1.cf79abc9e3b3ap-40, 0x1p-1022, 0x0.fffffffffffffp-1022,
    0x1p-1023};

constexpr const Format& format(Type compute) { return compute == Type::F64 ? f64 : f32; }

// c[0] + x (c[1] + x (c[2] + ...)), one fma a step.
inline Formula polynomial(Formula x, std::span<const double> c) {
  Formula sum = fma(x, c[c.size() - 1], c[c.size() - 2]);
  for (std::size_t k = c.size() - 2; k-- > 0;) sum = fma(sum, x, c[k]);
  return sum;
}

// `value`, at least +0, with the sign of x.
inline Formula with_sign_of(Formula x, Formula value) { return bits_or(value, bits_and(x, x.number(-0.0))); }

// -|x| in one operation.
inline Formula minus_abs(Formula x) { return bits_or(x, x.number(-0.0)); }

// In records/exp.cpp: exp(x) for x between exp_lowest, from where down it is +0, and 89 (f64: 710).
Formula exp_clamped(Type compute, Formula x);
double exp_lowest(Type compute);

// In records/exp.cpp: 1 - exp(-u) for 0 <= u <= 40, with a small relative error also near 0; u is main, or main + rest
// where that sum must not round.
Formula one_minus_exp_of_minus(Type compute, Formula main, std::optional<Formula> rest = {});

// In records/exp.cpp: the coefficients of 1 + r + r^2 h(r), which is exp(r) for |r| <= ln(2) / 2.
std::span<const double> exp_coefficients(Type compute);

// In records/log.cpp: log(1 + x) for all x.
Formula log1p_any(Type compute, Formula x);

}  // namespace trireme::parts
