// Storage types: words of packed elements to registers and back, each rounding once.
#include <fmt/format.h>

#include <type_traits>

#include "targets/ptx/machine.hpp"

namespace trireme::ptx {

template <typename R>
R Machine<R>::from_f32(F32 value, R to) {
  if constexpr (std::same_as<R, F32>) {
    if (value.value.id != to.value.id) k_.assign(to, value);
  } else {
    k_.widen(value, into(to));
  }
  return to;
}

// Towards zero, then the last bit set if that was not exact: a following rounding to fewer bits sees which side it is
// on.
template <typename R>
F32 Machine<R>::to_f32(R value) {
  if constexpr (std::same_as<R, F32>) {
    return value;
  } else {
    F32 cut = k_.narrow(value, Round::Zero);
    Pred inexact = k_.setp(FloatCompare::Neu, k_.widen(cut), value);
    U32 odd = k_.or_(k_.bitcast<U32>(cut), 1);
    return k_.bitcast<F32>(k_.selp(odd, k_.bitcast<U32>(cut), inexact));
  }
}

template <typename R>
F32 Machine<R>::to_f32_even(R value) {
  if constexpr (std::same_as<R, F32>) return value;
  else return k_.narrow(value, Round::Even);
}

template <typename R>
R Machine<R>::widen_bits(Type type, U32 word, int place, R to) {
  switch (type) {
    case Type::BF16: {
      U32 bits = place == 0 ? k_.shl(word, 16) : k_.and_(word, 0xFFFF0000u);
      if constexpr (std::same_as<R, F32>) return k_.bitcast<F32>(bits, into(to));
      else return from_f32(k_.bitcast<F32>(bits), to);
    }
    case Type::F16: {
      auto [low, high] = k_.unpack(word);
      if constexpr (std::same_as<R, F32>) return k_.widen_f16(place == 0 ? low : high, into(to));
      else return from_f32(k_.widen_f16(place == 0 ? low : high), to);
    }
    case Type::I8: return k_.cvt_s<R>(k_.bfe_s(word, 8 * place, 8), into(to));
    case Type::U8: return k_.cvt_s<R>(k_.bfe_u(word, 8 * place, 8), into(to));
    case Type::F8E8M0: {
      // The byte is an f32's exponent; 0 (2^-127) and 255 (NaN) need half of the mantissa's range beside it.
      U32 byte = k_.bfe_u(word, 8 * place, 8);
      U32 inside = k_.and_(k_.add(byte, 1), 0xFEu);  // 0 for those two
      U32 half = k_.shl(k_.shr_u(k_.add(inside, 0xFFFFFFFFu), 31), 22);
      return from_f32(k_.bitcast<F32>(k_.or_(k_.shl(byte, 23), half)), to);
    }
    case Type::F8E5M2: {  // the upper byte of an f16
      U32 half = k_.shl(k_.bfe_u(word, 8 * place, 8), 8);
      return from_f32(k_.widen_f16(k_.low_half(half)), to);
    }
    case Type::F8E4M3: {
      // Exponent and fraction moved into an f16's place stand for 2^-8 of the value; only NaN (all ones) is special.
      U32 byte = k_.bfe_u(word, 8 * place, 8);
      U32 magnitude = k_.shl(k_.and_(byte, 0x7Fu), 7);
      U32 sign = k_.shl(k_.and_(byte, 0x80u), 8);
      F32 value = k_.mul(k_.widen_f16(k_.low_half(k_.or_(magnitude, sign))), 256.0f);
      Pred nan = k_.setp(IntCompare::Eq, k_.and_(byte, 0x7Fu), 0x7Fu);
      return from_f32(k_.selp(k_.constant<F32>(__builtin_nanf("")), value, nan), to);
    }
    default: refused_ = fmt::format("{} is no packed type", name(type)); return to;
  }
}

template <typename R>
U32 Machine<R>::to_integer(Type type, R value) {
  U32 whole = k_.cvt_s<U32>(value, Round::Even);  // saturates; an f32's NaN becomes 0, an f64's the least integer
  if constexpr (std::is_same_v<R, F64>) {
    const U32 none = k_.constant<U32>(0);
    whole = k_.selp(whole, none, k_.setp(FloatCompare::Num, value, value));
  }
  if (type == Type::I32) return whole;
  return k_.min_s(k_.max_s(whole, static_cast<int>(facts(type).least)), static_cast<int>(facts(type).largest));
}

// Saturates; every NaN becomes the least integer, and has to be 0.
template <typename R>
U64 Machine<R>::to_i64(R value) {
  U64 whole = k_.template cvt_s<U64>(value, Round::Even);
  const U64 none = k_.constant<U64>(0);
  return k_.selp(whole, none, k_.setp(FloatCompare::Num, value, value));
}

// The nearest power of two, as its exponent. Half of 2^k is added to what follows 2^k; between 2^-127 and 2^-126, whose
// bits are those of a subnormal, the bits less 2^-127 are.
template <typename R>
U32 Machine<R>::f8e8m0_bits(F32 value) {
  constexpr int half = 1 << 22;
  U32 magnitude = k_.max_s(k_.bitcast<U32>(value), half);  // negative numbers are below every power
  U32 more = k_.min_s(k_.add(magnitude, -half), half);
  U32 power = k_.min_u(k_.shr_u(k_.add(magnitude, more), 23), 254);
  const U32 nan = k_.constant<U32>(255);
  return k_.selp(power, nan, k_.setp(FloatCompare::Num, value, value));
}

// Before sm_89 there is no instruction for it. Normal values: half of the last place less one bit, and the last bit
// itself, are added to the bits, so that ties go to even. Smaller ones: adding 2^23 last places lets the sum round.
template <typename R>
U32 Machine<R>::f8_bits(Type type, F32 value) {
  const bool e4m3 = type == Type::F8E4M3;
  const int fraction = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, cut = 23 - fraction;
  U32 bits = k_.bitcast<U32>(value), magnitude = k_.and_(bits, 0x7FFFFFFFu);
  U32 even = k_.add(k_.bfe_u(bits, cut, 1), (1 << (cut - 1)) - 1);
  U32 normal = k_.sub(k_.shr_u(k_.add(magnitude, even), cut), (127 - bias) << fraction);
  const float places = e4m3 ? 0x1p14f : 0x1p7f;  // 2^(23 + 1 - bias - fraction)
  F32 sum = k_.add(k_.bitcast<F32>(magnitude), places);
  U32 small = k_.sub(k_.bitcast<U32>(sum), __builtin_bit_cast(std::uint32_t, places));
  Pred is_small = k_.setp(IntCompare::Lo, magnitude, static_cast<std::uint32_t>(128 - bias) << 23);
  U32 rounded = k_.min_u(k_.selp(small, normal, is_small), e4m3 ? 0x7E : 0x7B);  // the largest finite
  Pred nan = k_.setp(IntCompare::Hi, magnitude, 0x7F800000u);
  U32 sign = k_.and_(k_.shr_u(bits, 24), 0x80u);
  return k_.or_(k_.selp(k_.constant<U32>(0x7F), rounded, nan), sign);
}

template <typename R>
U32 Machine<R>::pack_word(Type type, std::span<const R> values) {
  auto value = [&](std::size_t n) { return n < values.size() ? to_f32(values[n]) : k_.constant<F32>(0.0f); };
  switch (type) {
    case Type::BF16: {
      F32 low = value(0), high = value(1);
      return k_.to_half_pair(Half::BF16, low, high);
    }
    case Type::F16: {
      F32 low = value(0), high = value(1);
      return k_.to_half_pair(Half::F16, low, high);
    }
    case Type::I8:
    case Type::U8: {
      U32 word = k_.constant<U32>(0);
      for (std::size_t n = 0; n < values.size(); ++n) {
        U32 byte = k_.and_(to_integer(type, values[n]), 0xFFu);
        word = k_.or_(word, k_.shl(byte, 8 * n));
      }
      return word;
    }
    case Type::F8E8M0: {
      U32 word = k_.constant<U32>(0);
      for (std::size_t n = 0; n < values.size(); ++n)
        word = k_.or_(word, k_.shl(f8e8m0_bits(to_f32(values[n])), 8 * n));
      return word;
    }
    case Type::F8E4M3:
    case Type::F8E5M2: {
      Fp8 format = type == Type::F8E4M3 ? Fp8::E4M3 : Fp8::E5M2;
      if (arch_ < 89) {
        U32 word = k_.constant<U32>(0);
        for (std::size_t n = 0; n < values.size(); ++n)
          word = k_.or_(word, k_.shl(f8_bits(type, to_f32(values[n])), 8 * n));
        return word;
      }
      F32 v0 = value(0), v1 = value(1);
      B16 low = k_.to_fp8_pair(format, v0, v1);
      F32 v2 = value(2), v3 = value(3);
      B16 high = k_.to_fp8_pair(format, v2, v3);
      return k_.pack<U32>(low, high);
    }
    default: refused_ = fmt::format("{} is no packed type", name(type)); return k_.constant<U32>(0);
  }
}

template <typename R>
R Machine<R>::round_to(Type type, R value) {
  R to = k_.reg<R>();
  if (type == Type::F64) return value;
  if (type == Type::F32) return from_f32(to_f32_even(value), to);
  if (type == Type::I32) return k_.template cvt_s<R>(to_integer(type, value), into(to));
  if (type == Type::I64) return k_.template cvt_s<R>(to_i64(value), into(to));
  return widen_bits(type, pack_word(type, std::span<const R>(&value, 1)), 0, to);
}

#define TRIREME_INSTANTIATE(R)                                  \
  template R Machine<R>::widen_bits(Type, U32, int, R);         \
  template U32 Machine<R>::pack_word(Type, std::span<const R>); \
  template R Machine<R>::from_f32(F32, R);                      \
  template F32 Machine<R>::to_f32(R);                           \
  template F32 Machine<R>::to_f32_even(R);                      \
  template U32 Machine<R>::to_integer(Type, R);                 \
  template U32 Machine<R>::f8_bits(Type, F32);                  \
  template U64 Machine<R>::to_i64(R);                           \
  template U32 Machine<R>::f8e8m0_bits(F32);                    \
  template R Machine<R>::round_to(Type, R);
TRIREME_INSTANTIATE(F32)
TRIREME_INSTANTIATE(F64)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ptx
