#include "support/float_types.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace trireme {
namespace {

constexpr FloatFormat f64_format = float_format(Type::F64);

// 2^exponent, for exponents of normal f64 values.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + f64_format.bias()) << f64_format.mantissa_bits);
}

double widen_float(FloatFormat format, std::uint64_t bits) {
  std::uint64_t magnitude = bits & format.magnitude_mask();
  double sign = bits & (format.magnitude_mask() + 1) ? -1.0 : 1.0;
  if (format.is_nan(bits)) return std::nan("");
  if (format.infinities && magnitude == format.infinity()) return sign * HUGE_VAL;
  std::uint64_t hidden = std::uint64_t{1} << format.mantissa_bits;
  std::uint64_t mantissa = magnitude & (hidden - 1);
  int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  if (exponent == 0) exponent = 1;  // subnormal: the smallest exponent, no hidden bit
  else mantissa |= hidden;
  return sign * static_cast<double>(mantissa) * power_of_two(exponent - format.bias() - format.mantissa_bits);
}

// value / 2^shift, to the nearest integer, ties to even. value < 2^63.
std::uint64_t shift_right_to_nearest(std::uint64_t value, int shift) {
  if (shift > 63) return 0;  // below half of the last place
  std::uint64_t quotient = value >> shift, rest = value - (quotient << shift);
  std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)));
}

std::uint64_t round_to_float(FloatFormat format, double value) {
  std::uint64_t given = std::bit_cast<std::uint64_t>(value), magnitude = given & f64_format.magnitude_mask();
  std::uint64_t sign = (given >> 63) << (format.bits() - 1);
  if (magnitude > f64_format.infinity()) return format.nan();
  if (magnitude == f64_format.infinity())
    return sign | (format.saturates ? format.largest_finite() : format.infinity());
  // Every other f64 is far below the smallest type's subnormals or has a hidden bit: value = mantissa *
  // 2^(exponent-52).
  int exponent = static_cast<int>(magnitude >> 52) - f64_format.bias();
  if (exponent < f64_format.smallest_exponent()) return sign;
  std::uint64_t mantissa = (magnitude & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;

  // Count in units of the last place at this exponent; below the normal range the last place stays where it is.
  int base = std::max(exponent, format.smallest_exponent());
  int shift = 52 - format.mantissa_bits + (base - exponent);
  std::uint64_t units = shift_right_to_nearest(mantissa, shift);
  // The hidden bit, where there is one, and a carry out of the mantissa both add 1 to the exponent field by themselves.
  std::uint64_t bits = (static_cast<std::uint64_t>(base - format.smallest_exponent()) << format.mantissa_bits) + units;
  if (bits > format.largest_finite()) bits = format.saturates ? format.largest_finite() : format.infinity();
  return sign | bits;
}

// The nearest power of two, the larger one of two; what lies outside becomes the least or the largest.
std::uint64_t round_to_power(FloatFormat format, double value) {
  if (std::isnan(value)) return format.nan();
  const int smallest = format.smallest_exponent(), largest = smallest + static_cast<int>(format.largest_finite());
  if (value <= power_of_two(smallest)) return 0;
  if (value >= power_of_two(largest)) return format.largest_finite();
  const int below = std::ilogb(value);
  const bool up = value >= 1.5 * power_of_two(below);
  return static_cast<std::uint64_t>(std::min(below + up, largest) - smallest);
}

// Saturated and rounded to nearest even; NaN becomes 0.
std::int64_t round_to_integer(double value, std::int64_t smallest, std::int64_t largest) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(smallest)) return smallest;
  if (value >= static_cast<double>(largest)) return largest;
  double below = std::floor(value), rest = value - below;  // exact: beyond 2^52 values are whole
  std::int64_t integer = static_cast<std::int64_t>(below);
  return integer + (rest > 0.5 || (rest == 0.5 && (integer & 1)));
}

}  // namespace

double widen(Type type, std::uint64_t bits) {
  if (is_integer(type)) return static_cast<double>(widen_integer(type, bits));
  if (type == Type::F64) return std::bit_cast<double>(bits);
  if (type == Type::F32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const FloatFormat format = float_format(type);
  if (format.is_signed) return widen_float(format, bits);
  bits &= format.magnitude_mask();
  return bits == format.nan() ? std::nan("") : power_of_two(static_cast<int>(bits) - format.bias());
}

std::int64_t widen_integer(Type type, std::uint64_t bits) {
  if (type == Type::U8) return static_cast<std::uint8_t>(bits);
  const int unused = 64 - trireme::bits(type);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::uint64_t round_to_bits(Type type, double value) {
  if (type == Type::F64) return std::isnan(value) ? f64_format.nan() : std::bit_cast<std::uint64_t>(value);
  if (!is_integer(type)) {
    const FloatFormat format = float_format(type);
    return format.is_signed ? round_to_float(format, value) : round_to_power(format, value);
  }
  const TypeFacts& range = facts(type);
  const int unused = 64 - range.bits;
  const std::int64_t largest = type == Type::I64 ? INT64_MAX : static_cast<std::int64_t>(range.largest);
  const std::int64_t integer = round_to_integer(value, static_cast<std::int64_t>(range.least), largest);
  return static_cast<std::uint64_t>(integer) << unused >> unused;
}

// Sizes are written out, so that each is one instruction and not a call.
std::uint64_t load_bits(Type type, const void* element) {
  auto load = [&]<typename Bits>(Bits bits) -> std::uint64_t { return std::memcpy(&bits, element, sizeof bits), bits; };
  switch (bytes(type)) {
    case 1: return load(std::uint8_t{});
    case 2: return load(std::uint16_t{});
    case 4: return load(std::uint32_t{});
    default: return load(std::uint64_t{});
  }
}

void store_bits(Type type, void* element, std::uint64_t bits) {
  auto store = [&]<typename Bits>(Bits part) { std::memcpy(element, &part, sizeof part); };
  switch (bytes(type)) {
    case 1: return store(static_cast<std::uint8_t>(bits));
    case 2: return store(static_cast<std::uint16_t>(bits));
    case 4: return store(static_cast<std::uint32_t>(bits));
    default: return store(bits);
  }
}

std::int64_t load_integer(Type type, const void* element) { return widen_integer(type, load_bits(type, element)); }

double load_f64(Type type, const void* element) { return widen(type, load_bits(type, element)); }
void store_f64(Type type, void* element, double value) { store_bits(type, element, round_to_bits(type, value)); }

float load_f32(Type type, const void* element) {
  // The commonest types, by moving bits: bf16 is the upper half of an f32.
  if (type == Type::F32) return std::bit_cast<float>(static_cast<std::uint32_t>(load_bits(type, element)));
  if (type == Type::BF16) return std::bit_cast<float>(static_cast<std::uint32_t>(load_bits(type, element)) << 16);
  if (type == Type::I64) return static_cast<float>(load_integer(type, element));  // not by way of f64: rounded once
  return static_cast<float>(load_f64(type, element));
}

void store_f32(Type type, void* element, float value) { store_f64(type, element, value); }

}  // namespace trireme
