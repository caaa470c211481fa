// The storage types' conversions, as the contract says them: loads widen exactly, stores round once to nearest even.
// Clear before fast, and in integers, so that no rounding mode of the host matters to the 8- and 16-bit types.
//
// f16 and bf16 overflow to infinity by ordinary rounding; f8, i8 and i32 saturate, infinities too. NaN stays NaN, with
// the canonical bits of its type, and becomes 0 in integers. From f64 the contract rounds through f32 rounded to odd,
// which is rounding once (f32 has at least two bits more than each smaller type): one function serves both.
#pragma once
#include <cstdint>

#include "trireme/type.hpp"

namespace trireme {

// The layout of a floating-point storage type: sign, exponent, mantissa, from the top.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool infinities;  // IEEE: the top exponent holds infinity and NaNs; otherwise only the all-ones pattern is NaN
  bool saturates;   // stores end at the largest finite value

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int smallest_exponent() const { return 1 - bias(); }  // of a normal value
  constexpr std::uint64_t magnitude_mask() const { return (std::uint64_t{1} << (bits() - 1)) - 1; }
  constexpr std::uint64_t infinity() const {  // as bits; where there is none, its place
    return infinities ? ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits : magnitude_mask();
  }
  constexpr std::uint64_t largest_finite() const { return infinity() - 1; }
  constexpr std::uint64_t nan() const {
    return infinities ? infinity() | std::uint64_t{1} << (mantissa_bits - 1) : magnitude_mask();
  }
};

// Only for the floating-point types.
constexpr FloatFormat float_format(Type type) {
  switch (type) {
    case Type::F64: return {11, 52, true, false};
    case Type::F32: return {8, 23, true, false};
    case Type::F16: return {5, 10, true, false};
    case Type::BF16: return {8, 7, true, false};
    case Type::F8E4M3: return {4, 3, false, true};
    case Type::F8E5M2: return {5, 2, true, true};
    case Type::I8:
    case Type::I32: break;
  }
  return {};
}

// The value of the low bits(type) bits; exact.
double widen(Type type, std::uint64_t bits);

// The bits of the value rounded once to the type. An f32 value is passed as the f64 it equals.
std::uint64_t round_to_bits(Type type, double value);

// One element of memory, at any alignment. load_f32 rounds i32 (and f64, which contract programs never load as f32)
// once to nearest even; everything else is exact.
double load_f64(Type type, const void* element);
float load_f32(Type type, const void* element);
void store_f64(Type type, void* element, double value);
void store_f32(Type type, void* element, float value);
std::uint64_t load_bits(Type type, const void* element);
void store_bits(Type type, void* element, std::uint64_t bits);

// Rounds to the type and widens again: what RoundTo and a constant's way through memory do to a value.
template <typename T>
T through_type(Type type, T value) {
  return static_cast<T>(widen(type, round_to_bits(type, value)));
}

}  // namespace trireme
