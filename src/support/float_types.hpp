// The storage types' conversions, as the contract says them: loads widen exactly, stores round once to nearest even.
// Clear before fast, and in integers, so that no rounding mode of the host matters to the 8- and 16-bit types.
//
// f16 and bf16 overflow to infinity by ordinary rounding; f8 and integers saturate, infinities too. NaN stays NaN, with
// the canonical bits of its type, and becomes 0 in integers. f8e8m0 holds powers of two: the nearest one, the larger of
// two that are as near, and the least for everything below, negative numbers too. f4e2m1 has no NaN: one becomes 6, as
// NVIDIA's conversions have it. From f64 the contract rounds through
// f32 rounded to odd, which is rounding once (f32 has at least two bits more than each smaller type): one function
// serves both.
#pragma once
#include <cstdint>

#include "trireme/type.hpp"

namespace trireme {

// Only for the floating-point types.
constexpr FloatFormat float_format(Type type) { return facts(type).format; }

// The value of the low bits(type) bits; exact but for i64, which is rounded once.
double widen(Type type, std::uint64_t bits);

// The bits of the value rounded once to the type. An f32 value is passed as the f64 it equals.
std::uint64_t round_to_bits(Type type, double value);

// The integer that the low bits of an integer type are; exact.
std::int64_t widen_integer(Type type, std::uint64_t bits);

// One element of memory, at any alignment; of a packed type its byte's low half, but bits are the whole byte
// (layout/elements.hpp has the halves). load_f32 rounds i32 and i64 (and f64, which contract programs never load as
// f32), load_f64 rounds i64 once to nearest even; everything else is exact.
double load_f64(Type type, const void* element);
float load_f32(Type type, const void* element);
void store_f64(Type type, void* element, double value);
void store_f32(Type type, void* element, float value);
std::uint64_t load_bits(Type type, const void* element);
std::int64_t load_integer(Type type, const void* element);  // of an integer type
void store_bits(Type type, void* element, std::uint64_t bits);

// Rounds to the type and widens again: what RoundTo and a constant's way through memory do to a value.
template <typename T>
T through_type(Type type, T value) {
  return static_cast<T>(widen(type, round_to_bits(type, value)));
}

}  // namespace trireme
