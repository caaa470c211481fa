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
  if (format.infinities ? magnitude > format.infinity() : magnitude == format.nan()) return std::nan("");
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

// Saturated and rounded to nearest even; NaN becomes 0.
std::int64_t round_to_integer(double value, std::int64_t smallest, std::int64_t largest) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(smallest)) return smallest;
  if (value >= static_cast<double>(largest)) return largest;
  double below = std::floor(value), rest = value - below;  // exact: |value| < 2^31
  std::int64_t integer = static_cast<std::int64_t>(below);
  return integer + (rest > 0.5 || (rest == 0.5 && (integer & 1)));
}

}  // namespace

double widen(Type type, std::uint64_t bits) {
  switch (type) {
    case Type::F64: return std::bit_cast<double>(bits);
    case Type::F32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case Type::F16:
    case Type::BF16:
    case Type::F8E4M3:
    case Type::F8E5M2: return widen_float(float_format(type), bits);
    case Type::I8: return static_cast<std::int8_t>(bits);
    case Type::I32: return static_cast<std::int32_t>(bits);
  }
  return 0;
}

std::uint64_t round_to_bits(Type type, double value) {
  switch (type) {
    case Type::F64: return std::isnan(value) ? f64_format.nan() : std::bit_cast<std::uint64_t>(value);
    case Type::F32:
    case Type::F16:
    case Type::BF16:
    case Type::F8E4M3:
    case Type::F8E5M2: return round_to_float(float_format(type), value);
    case Type::I8: return static_cast<std::uint8_t>(round_to_integer(value, INT8_MIN, INT8_MAX));
    case Type::I32: return static_cast<std::uint32_t>(round_to_integer(value, INT32_MIN, INT32_MAX));
  }
  return 0;
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

double load_f64(Type type, const void* element) { return widen(type, load_bits(type, element)); }
void store_f64(Type type, void* element, double value) { store_bits(type, element, round_to_bits(type, value)); }

float load_f32(Type type, const void* element) {
  // The commonest types, by moving bits: bf16 is the upper half of an f32.
  if (type == Type::F32) return std::bit_cast<float>(static_cast<std::uint32_t>(load_bits(type, element)));
  if (type == Type::BF16) return std::bit_cast<float>(static_cast<std::uint32_t>(load_bits(type, element)) << 16);
  return static_cast<float>(load_f64(type, element));
}

void store_f32(Type type, void* element, float value) { store_f64(type, element, value); }

}  // namespace trireme
