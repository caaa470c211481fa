#include "layout/elements.hpp"

#include <algorithm>

#include "support/float_types.hpp"

namespace trireme {
namespace {

int shift_of(const Array& array, std::int64_t r, std::int64_t c) { return 4 * static_cast<int>(array.place(r, c) & 1); }

}  // namespace

std::uint64_t bits_at(const Array& array, std::int64_t r, std::int64_t c) {
  const std::uint64_t bits = load_bits(array.type, array.entry(r, c));
  return is_packed(array.type) ? bits >> shift_of(array, r, c) & 15 : bits;
}

void set_bits_at(const Array& array, std::int64_t r, std::int64_t c, std::uint64_t bits) {
  void* const entry = array.entry(r, c);
  if (is_packed(array.type)) {
    const int shift = shift_of(array, r, c);
    bits = (load_bits(array.type, entry) & ~(std::uint64_t{15} << shift)) | (bits & 15) << shift;
  }
  store_bits(array.type, entry, bits);
}

double value_at(const Array& array, std::int64_t r, std::int64_t c) { return widen(array.type, bits_at(array, r, c)); }

void set_value_at(const Array& array, std::int64_t r, std::int64_t c, double value) {
  set_bits_at(array, r, c, round_to_bits(array.type, value));
}

std::optional<std::string_view> why_not_in_bytes(const Array& array, std::int64_t rows, std::int64_t columns) {
  if (!is_packed(array.type)) return std::nullopt;
  if (columns % 2) return "f4e2m1 takes two columns a byte, and their number is odd";
  if (array.column_stride != 1 || array.column_jumps.size())
    return "f4e2m1 takes two columns a byte: columns lie side by side, with a stride of 1";
  const auto is_odd = [](const Jump& jump) { return jump.elements % 2 != 0; };
  if (rows > 1 && (array.row_stride % 2 || std::any_of(array.row_jumps.begin(), array.row_jumps.end(), is_odd)))
    return "f4e2m1 takes two columns a byte: rows begin with a byte, and their strides are even";
  return std::nullopt;
}

Array in_bytes(const Array& array) {
  if (!is_packed(array.type)) return array;
  Array bytes{.data = array.data,
              .type = Type::U8,
              .row_stride = array.row_stride / 2,
              .column_stride = 1,
              .table_rows = array.table_rows};
  for (const Jump& jump : array.row_jumps) bytes.row_jumps.push_back({jump.every, jump.elements / 2});
  return bytes;
}

}  // namespace trireme
