// Elements of arrays, packed ones too; and packed arrays as the bytes that kernels see.
#pragma once
#include <optional>
#include <string_view>

#include "layout/array.hpp"

namespace trireme {

std::uint64_t bits_at(const Array& array, std::int64_t r, std::int64_t c);
void set_bits_at(const Array& array, std::int64_t r, std::int64_t c, std::uint64_t bits);
double value_at(const Array& array, std::int64_t r, std::int64_t c);
void set_value_at(const Array& array, std::int64_t r, std::int64_t c, double value);  // rounded once

// Why an array of a packed type cannot lie so; nothing where it can, and for all other types. A byte holds two columns
// of one row: they lie side by side, and rows begin with a byte.
std::optional<std::string_view> why_not_in_bytes(const Array& array, std::int64_t rows, std::int64_t columns);

inline constexpr std::string_view odd_last_axis = "f4e2m1 takes two columns a byte, and the last axis is odd";

// The same memory as bytes, half as many columns; arrays of other types as they are.
Array in_bytes(const Array& array);
constexpr std::int64_t columns_in_bytes(Type type, std::int64_t columns) {
  return is_packed(type) ? columns / 2 : columns;
}

}  // namespace trireme
