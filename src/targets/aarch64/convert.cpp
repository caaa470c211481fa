// Storage types: widening is exact (i32 and i64 to f32 round once), narrowing rounds once to nearest even.
#include <bit>

#include "targets/aarch64/machine.hpp"

namespace trireme::aarch64 {

namespace {

// The field of a shift by an immediate says the width of lanes, too.
Assembler::Extra left(int by, int width) { return {.shown = by, .bits = static_cast<std::uint32_t>(width + by) << 16}; }
Assembler::Extra right(int by, int width) {
  return {.shown = by, .bits = static_cast<std::uint32_t>(2 * width - by) << 16};
}

}  // namespace

void Machine::widen(Vec dst, Vec raw, Type type) {
  if (type == compute_) return move(dst, raw);
  if (type == Type::F32) return as_.put(form::fcvtl_2d, {dst, raw});
  if (is_integer(type)) {
    Vec integers = raw;
    auto step = [&](const Form& form) {
      Vec wider = temporary();
      as_.put(form, {wider, integers});
      integers = wider;
    };
    if (type == Type::I8) step(form::sxtl_8h), step(form::sxtl_4s);
    if (type == Type::U8) step(form::uxtl_8h), step(form::uxtl_4s);
    if (wide()) step(form::sxtl_2d);
    return lanewise(form::scvtf, {dst, integers});
  }
  const Vec single = wide() ? temporary() : dst;
  if (type == Type::F16) as_.put(form::fcvtl_4s, {single, raw});
  if (type == Type::BF16) as_.put(form::shll_4s_16, {single, raw});
  if (type == Type::F8E4M3 || type == Type::F8E5M2) widen_f8(single, raw, type);
  if (type == Type::F8E8M0) widen_f8e8m0(single, raw);
  if (wide()) as_.put(form::fcvtl_2d, {dst, single});
}

// Through f16, which has f8e5m2's exponent: f8e4m3 as an f16 of the same fields is 2^-8 of its value. Its NaN comes out
// as 480, which is no other code's value.
void Machine::widen_f8(Vec dst, Vec raw, Type type) {
  Vec words = temporary(), value = temporary(), nan = temporary();
  as_.put(form::uxtl_8h, {words, raw});
  as_.put(form::shl_8h, {words, words}, left(8, 16));
  if (type == Type::F8E5M2) return as_.put(form::fcvtl_4s, {dst, words});
  as_.put(form::sshr_8h, {words, words}, right(1, 16));
  as_.put(form::and_, {words, words, all(0xBFFFBFFFu)});
  as_.put(form::fcvtl_4s, {value, words});
  as_.put(form::fmul_4s, {value, value, all(0x43800000u)});  // 256
  as_.put(form::fabs_4s, {nan, value});
  as_.put(form::fcmeq_4s, {nan, nan, all(0x43F00000u)});  // 480
  as_.put(form::orr, {dst, value, nan});
}

// The byte is an f32's exponent; 0 (2^-127) and 255 (NaN) need half of the mantissa's range beside it.
void Machine::widen_f8e8m0(Vec dst, Vec raw) {
  Vec exponent = temporary(), least = temporary(), nan = temporary();
  as_.put(form::uxtl_8h, {exponent, raw});
  as_.put(form::uxtl_4s, {exponent, exponent});
  as_.put(form::cmeq_0_4s, {least, exponent});
  as_.put(form::cmeq_4s, {nan, exponent, all(255u)});
  as_.put(form::orr, {nan, nan, least});
  as_.put(form::and_, {nan, nan, all(0x400000u)});
  as_.put(form::shl_4s, {exponent, exponent}, left(23, 32));
  as_.put(form::orr, {dst, exponent, nan});
}

Vec Machine::narrow(Vec value, Type type, bool exact) {
  if (type == compute_) return value;
  if (is_integer(type)) return narrow_integer(value, type);
  Vec raw = temporary();
  if (type == Type::F32) {
    as_.put(form::fcvtn_2s, {raw, value});
    return raw;
  }
  Vec single = value;
  if (wide()) as_.put(form::fcvtxn_2s, {single = temporary(), value});  // to odd: no later rounding can go wrong
  if (type == Type::BF16) return narrow_bf16(single, exact);
  if (type == Type::F8E4M3 || type == Type::F8E5M2) return narrow_f8(single, type);
  if (type == Type::F8E8M0) return narrow_f8e8m0(single);
  as_.put(form::fcvtn_4h, {raw, single});
  return raw;
}

// Conversions end at the largest and least values, and make 0 of NaN.
Vec Machine::narrow_integer(Vec value, Type type) {
  Vec raw = temporary();
  lanewise(form::fcvtns, {raw, value});
  const bool is_unsigned = type == Type::U8;
  if (wide()) as_.put(is_unsigned ? form::sqxtun_2s : form::sqxtn_2s, {raw, raw});
  if (type == Type::I32) return raw;
  as_.put(!is_unsigned ? form::sqxtn_4h : wide() ? form::uqxtn_4h : form::sqxtun_4h, {raw, raw});
  as_.put(is_unsigned ? form::uqxtn_8b : form::sqxtn_8b, {raw, raw});
  return raw;
}

void Machine::set_where_nan(Vec bits, Vec x, std::uint32_t more) {
  Vec nan = temporary();
  as_.put(form::fcmeq_4s, {nan, x, x});
  as_.put(form::mvn, {nan, nan});
  as_.put(form::and_, {nan, nan, all(more)});
  as_.put(form::orr, {bits, bits, nan});
}

// Adds just under half of the last place kept, or half where that place is odd. All ones are a NaN as well as any.
Vec Machine::round_bf16(Vec x) {
  Vec bits = temporary(), odd = temporary(), number = temporary();
  as_.put(form::add_4s, {bits, x, all(0x7FFFu)});
  as_.put(form::shl_4s, {odd, x}, left(15, 32));
  as_.put(form::usra_4s, {bits, odd}, right(31, 32));
  as_.put(form::fcmeq_4s, {number, x, x});
  as_.put(form::orn, {bits, bits, number});
  return bits;
}

Vec Machine::narrow_bf16(Vec x, bool exact) {
  Vec raw = temporary();
  if (isa_ == Isa::NeonBf16) as_.put(form::bfcvtn_4h, {raw, x});
  else as_.put(form::shrn_4h_16, {raw, exact ? x : round_bf16(x)});
  return raw;
}

// Two vectors whose elements are half as wide as lanes, as one register.
Vec Machine::narrow_two(Vec low, Vec high, Type type, bool exact) {
  if (type == Type::BF16 && isa_ != Isa::NeonBf16) {
    const Vec lower = exact ? low : round_bf16(low), upper = exact ? high : round_bf16(high), raw = temporary();
    as_.put(form::uzp2_8h, {raw, lower, upper});
    return raw;
  }
  const Vec raw = narrow(low, type, exact);
  if (type == Type::BF16) as_.put(form::bfcvtn2_8h, {raw, high});
  else if (type == Type::F16) as_.put(form::fcvtn2_8h, {raw, high});
  else if (type == Type::F32) as_.put(form::fcvtn2_4s, {raw, high});
  else to_lane(raw, 1, narrow(high, type, exact));
  return raw;
}

// Adding 2^(e+23-m), where e is the exponent of |x| (at least the type's least) and m its mantissa bits, rounds to the
// type's last place; the sum's low bits then count those places, and e - least gives the codes below.
Vec Machine::narrow_f8(Vec x, Type type) {
  const int mantissa = type == Type::F8E4M3 ? 3 : 2;
  const int least = type == Type::F8E4M3 ? -6 : -14;
  const std::uint32_t least_bits = static_cast<std::uint32_t>(least + 127) << 23;
  const auto largest = std::bit_cast<std::uint32_t>(static_cast<float>(facts(type).largest));
  Vec magnitude = temporary(), exponent = temporary(), magic = temporary(), sign = temporary();
  as_.put(form::fabs_4s, {magnitude, x});
  as_.put(form::fmin_4s, {magnitude, magnitude, all(largest)});
  as_.put(form::and_, {exponent, magnitude, all(0x7F800000u)});
  const Vec floor = all(least_bits);
  as_.put(form::smax_4s, {exponent, exponent, floor});
  as_.put(form::add_4s, {magic, exponent, all(static_cast<std::uint32_t>(23 - mantissa) << 23)});
  as_.put(form::fadd_4s, {magnitude, magnitude, magic});
  as_.put(form::sub_4s, {magnitude, magnitude, magic});
  as_.put(form::sub_4s, {exponent, exponent, floor});
  as_.put(form::ushr_4s, {exponent, exponent}, right(23 - mantissa, 32));
  as_.put(form::add_4s, {magnitude, magnitude, exponent});
  as_.put(form::ushr_4s, {sign, x}, right(24, 32));
  as_.put(form::and_, {sign, sign, all(0x80u)});
  as_.put(form::orr, {magnitude, magnitude, sign});
  set_where_nan(magnitude, x, 0x7Fu);
  return pack(magnitude);
}

// The nearest power of two, as its exponent. Half of 2^k is added to what follows 2^k; between 2^-127 and 2^-126, whose
// bits are those of a subnormal, the bits less 2^-127 are.
Vec Machine::narrow_f8e8m0(Vec x) {
  constexpr std::uint32_t half = 1u << 22;
  Vec magnitude = temporary(), more = temporary();
  const Vec halves = all(half);
  as_.put(form::smax_4s, {magnitude, x, halves});  // negative numbers are below every power
  as_.put(form::sub_4s, {more, magnitude, halves});
  as_.put(form::smin_4s, {more, more, halves});
  as_.put(form::add_4s, {magnitude, magnitude, more});
  as_.put(form::ushr_4s, {magnitude, magnitude}, right(23, 32));
  as_.put(form::smin_4s, {magnitude, magnitude, all(254u)});
  set_where_nan(magnitude, x, 255u);
  return pack(magnitude);
}

Vec Machine::pack(Vec dwords) {
  Vec raw = temporary();
  as_.put(form::xtn_4h, {raw, dwords});
  as_.put(form::xtn_8b, {raw, raw});
  return raw;
}

void Machine::round_to(Type type, Vec dst, Vec a) {
  if (type == Type::BF16 && !wide() && isa_ != Isa::NeonBf16)
    return as_.put(form::and_, {dst, round_bf16(a), all(0xFFFF0000u)});
  if (type != Type::I64) return widen(dst, narrow(a, type), type);
  // As numbers: whole, within 2^63, and 0 for NaN and for -0.
  Vec whole = temporary(), number = temporary();
  lanewise(form::frintn, {whole, a});
  lanewise(form::fmin, {whole, whole, all(0x1p63)});
  lanewise(form::fmax, {whole, whole, all(-0x1p63)});
  lanewise(form::fadd, {whole, whole, all(0.0)});
  lanewise(form::fcmeq, {number, a, a});
  as_.put(form::and_, {dst, whole, number});
}

}  // namespace trireme::aarch64
