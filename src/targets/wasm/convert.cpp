#include "targets/wasm/convert.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::wasm {
namespace {

// A float of 8 or 16 bits with a sign, subnormals, and NaN (and perhaps infinity) above its largest value.
struct SmallFloat {
  int bits, mantissa_bits, bias;
  std::uint32_t largest;  // magnitude bits of the largest finite value
  float limit;            // what larger values become: the largest finite value, or 2^16, whose bits are f16's infinity
  std::uint32_t nan;

  float smallest_normal() const { return std::ldexp(1.0f, 1 - bias); }
  // A float whose last bit counts as much as the last bit of a subnormal.
  float subnormal_magic() const { return std::ldexp(1.0f, 24 - bias - mantissa_bits); }
  std::uint32_t rebias() const { return static_cast<std::uint32_t>(127 - bias) << 23; }
};

constexpr SmallFloat f16 = {16, 10, 15, 0x7bff, 65536, 0x7e00};
constexpr SmallFloat f8e4m3 = {8, 3, 7, 0x7e, 448, 0x7f};
constexpr SmallFloat f8e5m2 = {8, 2, 15, 0x7b, 57344, 0x7f};

// No product of subnormals: those cost a hundred cycles on some machines.
Value<F32x4> widen(Value<I32x4> bits, const SmallFloat& from) {
  const auto magnitude = bits & ((1u << (from.bits - 1)) - 1);
  const auto shifted = magnitude << (23 - from.mantissa_bits);
  const auto special = more(magnitude, from.largest) & 0x7f800000u;
  const auto normal = (shifted + from.rebias()) | special;
  const auto magic = std::bit_cast<std::uint32_t>(from.subnormal_magic());
  const auto subnormal = as<F32x4>(magnitude | magic) - from.subnormal_magic();
  const auto is_subnormal = less(magnitude, 1u << from.mantissa_bits);
  const auto unsigned_bits = choose(is_subnormal, as<I32x4>(subnormal), normal);
  const auto sign = (bits << (32 - from.bits)) & 0x80000000u;
  return as<F32x4>(unsigned_bits | sign);
}

Value<I32x4> narrow(Value<F32x4> value, const SmallFloat& to) {
  const int shift = 23 - to.mantissa_bits;
  // pmin(a, b) is b < a ? b : a: a NaN stays.
  const auto magnitude = binary<F32x4>("f32x4.pmin", abs(value), Right<F32x4>(to.limit));
  const auto bits = as<I32x4>(magnitude);
  const auto odd = (bits >> shift) & 1u;
  const auto normal = ((bits + ((1u << (shift - 1)) - 1 - to.rebias())) + odd) >> shift;
  const auto subnormal =
      as<I32x4>(magnitude + to.subnormal_magic()) - std::bit_cast<std::uint32_t>(to.subnormal_magic());
  const auto is_subnormal = less(magnitude, to.smallest_normal());
  const auto finite = choose(is_subnormal, subnormal, normal);
  const auto is_nan = differ(value, value);
  const auto unsigned_bits = choose(is_nan, value.writer->constant<I32x4>(to.nan), finite);
  const auto sign = (as<I32x4>(value) >> (32 - to.bits)) & (1u << (to.bits - 1));
  return unsigned_bits | sign;
}

Value<I32x4> narrow_to_bf16(Value<F32x4> value, bool exact) {
  const auto bits = as<I32x4>(value);
  if (exact) return bits >> 16;
  const auto odd = (bits >> 16) & 1u;
  const auto rounded = bits + 0x7fffu + odd;
  const auto is_nan = differ(value, value);  // all ones: a NaN as it is
  return (rounded | is_nan) >> 16;
}

Value<I32x4> clamp_to_byte(Value<I32x4> value, Storage to) {
  const auto least = static_cast<std::int32_t>(facts(to).least), largest = static_cast<std::int32_t>(facts(to).largest);
  const auto low = binary<I32x4>("i32x4.max_s", value, Right<I32x4>(static_cast<std::uint32_t>(least)));
  return binary<I32x4>("i32x4.min_s", low, Right<I32x4>(static_cast<std::uint32_t>(largest))) & 0xffu;
}

// The byte is an f32's exponent; 0 (2^-127) and 255 (NaN) need half of the mantissa's range beside it.
Value<F32x4> widen_f8e8m0(Value<I32x4> bits) {
  const auto inside = (bits + 1u) & 0xfeu;  // 0 for those two
  const auto half = ((inside - 1u) >> 31) << 22;
  return as<F32x4>((bits << 23) | half);
}

// The nearest power of two, as its exponent. Half of 2^k is added to what follows 2^k; between 2^-127 and 2^-126, whose
// bits are those of a subnormal, the bits less 2^-127 are.
Value<I32x4> narrow_to_f8e8m0(Value<F32x4> value) {
  constexpr std::uint32_t half = 1u << 22;
  const auto magnitude = binary<I32x4>("i32x4.max_s", as<I32x4>(value), Right<I32x4>(half));
  const auto more = binary<I32x4>("i32x4.min_s", magnitude - half, Right<I32x4>(half));
  const auto power = binary<I32x4>("i32x4.min_s", (magnitude + more) >> 23, Right<I32x4>(254u));
  return choose(differ(value, value), value.writer->constant<I32x4>(255), power);
}

// The low words of two f64 lanes, or of conditions on them, in the lower lanes.
Value<I32x4> low_words(Value<I64x2> lanes) {
  return as<I32x4>(shuffle(lanes, lanes, {0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11}));
}

// f32 rounded to odd: towards zero, and the last bit set where that lost something. Rounding again, to at most 22
// bits, then gives what rounding once would have given. Beyond f32 lie its largest value and its smallest.
Value<F32x4> to_odd_f32(Value<F64x2> value) {
  Writer& writer = *value.writer;
  const auto nearest = writer.apply<F32x4>("f32x4.demote_f64x2_zero", value);
  const auto back = writer.apply<F64x2>("f64x2.promote_low_f32x4", nearest);
  const auto magnitude = abs(value);
  const auto away = low_words(more(abs(back), magnitude));
  const auto inexact = low_words(differ(back, value)) & 1u;
  return as<F32x4>((as<I32x4>(nearest) + away) | inexact);
}

}  // namespace

Value<F32x4> widen(Value<I32x4> bits, Storage from) {
  Writer& writer = *bits.writer;
  switch (from) {
    case Storage::F64:
    case Storage::F32: return as<F32x4>(bits);
    case Storage::F16: return widen(bits, f16);
    case Storage::BF16: return as<F32x4>(bits << 16);
    case Storage::F8E4M3: return widen(bits, f8e4m3);
    case Storage::F8E5M2: return widen(bits, f8e5m2);
    case Storage::I8: return writer.apply<F32x4>("f32x4.convert_i32x4_s", shift_signed(bits << 24, 24));
    case Storage::U8:
    case Storage::I32: return writer.apply<F32x4>("f32x4.convert_i32x4_s", bits);
    case Storage::F8E8M0: return widen_f8e8m0(bits);
    case Storage::I64:            // lane by lane: the machine's affair
    case Storage::F4E2M1: break;  // bytes
  }
  return as<F32x4>(bits);
}

Value<F64x2> widen_to_f64(Value<I32x4> bits, Storage from) {
  Writer& writer = *bits.writer;
  if (from == Storage::F64) return as<F64x2>(bits);
  if (from == Storage::I32) return writer.apply<F64x2>("f64x2.convert_low_i32x4_s", bits);
  return writer.apply<F64x2>("f64x2.promote_low_f32x4", widen(bits, from));
}

Value<I32x4> narrow(Value<F32x4> value, Storage to, bool exact) {
  Writer& writer = *value.writer;
  const auto integer = [&] {
    const auto whole = writer.apply<F32x4>("f32x4.nearest", value);
    return writer.apply<I32x4>("i32x4.trunc_sat_f32x4_s", whole);
  };
  switch (to) {
    case Storage::F64:
    case Storage::F32: return as<I32x4>(value);
    case Storage::F16: return narrow(value, f16);
    case Storage::BF16: return narrow_to_bf16(value, exact);
    case Storage::F8E4M3: return narrow(value, f8e4m3);
    case Storage::F8E5M2: return narrow(value, f8e5m2);
    case Storage::I8:
    case Storage::U8: return clamp_to_byte(integer(), to);
    case Storage::I32: return integer();
    case Storage::F8E8M0: return narrow_to_f8e8m0(value);
    case Storage::I64:
    case Storage::F4E2M1: break;
  }
  return as<I32x4>(value);
}

Value<I32x4> narrow_from_f64(Value<F64x2> value, Storage to, bool exact) {
  Writer& writer = *value.writer;
  if (to == Storage::F64) return as<I32x4>(value);
  if (to == Storage::F32) return writer.apply<I32x4>("f32x4.demote_f64x2_zero", value);
  if (is_integer(to)) {
    const auto whole = writer.apply<F64x2>("f64x2.nearest", value);
    const auto integer = writer.apply<I32x4>("i32x4.trunc_sat_f64x2_s_zero", whole);
    return to == Storage::I32 ? integer : clamp_to_byte(integer, to);
  }
  return narrow(to_odd_f32(value), to, exact);
}

}  // namespace trireme::wasm
