// The storage types of operands and results. A plan gives them; a program knows none.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trireme {

enum class Type : std::uint8_t { F64, F32, F16, BF16, F8E4M3, F8E5M2, I8, I32, I64, U8, F8E8M0, F4E2M1 };

// The layout of a floating-point storage type: sign, exponent, mantissa, from the top. Without exponent bits it is an
// integer.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  bool infinities = false;  // IEEE: the top exponent holds infinity and NaNs; otherwise the all-ones pattern is NaN
  bool saturates = false;   // stores end at the largest finite value
  bool is_signed = true;    // without a sign (and without a mantissa) every pattern but NaN is a power of two
  bool nans = true;         // without, NaN is stored as the largest finite value

  constexpr int bits() const { return (is_signed ? 1 : 0) + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int smallest_exponent() const {  // of a normal value; powers of two have no others
    return (is_signed ? 1 : 0) - bias();
  }
  constexpr std::uint64_t magnitude_mask() const { return (std::uint64_t{1} << (exponent_bits + mantissa_bits)) - 1; }
  constexpr std::uint64_t infinity() const {  // as bits; where there is none, its place
    return infinities ? ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits : magnitude_mask();
  }
  constexpr std::uint64_t largest_finite() const { return infinity() - (nans ? 1 : 0); }
  constexpr std::uint64_t nan() const {
    return infinities ? infinity() | std::uint64_t{1} << (mantissa_bits - 1) : magnitude_mask();
  }
  constexpr bool is_nan(std::uint64_t bits) const {
    const std::uint64_t magnitude = bits & magnitude_mask();
    return nans && (infinities ? magnitude > infinity() : magnitude == nan());
  }
};

// What a storage type is; src/support/float_types.hpp says how numbers are rounded to it.
struct TypeFacts {
  Type type;
  std::string_view name;
  int bits;
  double largest;          // the largest finite value; of i64 the f64 next to it
  double least;            // the least finite value
  FloatFormat format;      // no exponent bits: an integer
  std::string_view numpy;  // the dtype that carries it in .npy files
  bool is_numpy;           // and says all of it; the others travel as bits
};

inline constexpr std::array<TypeFacts, 12> type_facts = {{
    {Type::F64, "f64", 64, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, {11, 52, true}, "float64", true},
    {Type::F32, "f32", 32, 0x1.fffffep127, -0x1.fffffep127, {8, 23, true}, "float32", true},
    {Type::F16, "f16", 16, 65504, -65504, {5, 10, true}, "float16", true},
    {Type::BF16, "bf16", 16, 0x1.fep127, -0x1.fep127, {8, 7, true}, "uint16", false},
    {Type::F8E4M3, "f8e4m3", 8, 448, -448, {4, 3, false, true}, "uint8", false},
    {Type::F8E5M2, "f8e5m2", 8, 57344, -57344, {5, 2, true, true}, "uint8", false},
    {Type::I8, "i8", 8, 127, -128, {}, "int8", true},
    {Type::I32, "i32", 32, 2147483647, -2147483648.0, {}, "int32", true},
    {Type::I64, "i64", 64, 0x1p63, -0x1p63, {}, "int64", true},
    {Type::U8, "u8", 8, 255, 0, {}, "uint8", true},
    {Type::F8E8M0, "f8e8m0", 8, 0x1p127, 0x1p-127, {8, 0, false, true, false}, "uint8", false},
    {Type::F4E2M1, "f4e2m1", 4, 6, -6, {2, 1, false, true, true, false}, "uint8", false},
}};

// An integer cast to Type may be none of them; it is refused wherever a type is given.
constexpr bool exists(Type type) { return static_cast<std::size_t>(type) < type_facts.size(); }
inline constexpr TypeFacts no_type = {Type::F32, "no type", 8, 0, 0, {}, "", false};

constexpr const TypeFacts& facts(Type type) {
  return exists(type) ? type_facts[static_cast<std::size_t>(type)] : no_type;
}
constexpr std::string_view name(Type type) { return facts(type).name; }
constexpr int bits(Type type) { return facts(type).bits; }
// Two columns share a byte: the even one lies in its low half. Kernels see such an array as bytes (passes/pack.cpp).
constexpr bool is_packed(Type type) { return bits(type) == 4; }
constexpr std::size_t bytes(Type type) { return static_cast<std::size_t>(bits(type) + 7) / 8; }  // that hold one
constexpr bool is_integer(Type type) { return facts(type).format.exponent_bits == 0; }

constexpr std::optional<Type> type_named(std::string_view name) {
  for (const TypeFacts& each : type_facts)
    if (each.name == name) return each.type;
  return std::nullopt;
}

}  // namespace trireme
