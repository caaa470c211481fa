#include "drift/elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "problem/digest.hpp"
#include "support/float_types.hpp"

namespace trireme::drift {
namespace {

// How torch's elements are read: as parts of one of our types, or as integers that we have not.
struct ElementType {
  std::string_view name;
  std::optional<Type> type;
  int parts = 1, bytes = 0;  // bytes of a part
  bool is_signed = false;
};

std::optional<ElementType> element_type(std::string_view name) {
  if (const std::optional<Type> type = type_named(name); type && !is_packed(*type))
    return ElementType{name, *type, 1, static_cast<int>(bytes(*type)), true};
  constexpr ElementType others[] = {{"bool", Type::U8, 1, 1},       {"i16", std::nullopt, 1, 2, true},
                                    {"u16", std::nullopt, 1, 2},    {"u32", std::nullopt, 1, 4},
                                    {"u64", std::nullopt, 1, 8},    {"c64", Type::F32, 2, 4, true},
                                    {"c128", Type::F64, 2, 8, true}};
  for (const ElementType& each : others)
    if (each.name == name) return each;
  return std::nullopt;
}

std::uint64_t bits_at(const ElementType& type, const std::byte* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(type.bytes));  // little-endian, as all machines that we run on
  return type.type ? canonical_bits(*type.type, bits) : bits;
}

// Neighbours are 1 apart, and both zeros the same.
std::optional<std::uint64_t> ulps_between(const ElementType& type, std::uint64_t a, std::uint64_t b) {
  if (!type.type || is_integer(*type.type)) return std::nullopt;
  const FloatFormat format = float_format(*type.type);
  if (format.is_nan(a) || format.is_nan(b)) return std::nullopt;
  const std::uint64_t mask = format.magnitude_mask(), x = a & mask, y = b & mask;
  const bool same_sign = !format.is_signed || (a & ~mask) == (b & ~mask);
  return same_sign ? std::max(x, y) - std::min(x, y) : x + y;
}

std::string text_of(const ElementType& type, std::uint64_t bits) {
  if (!type.type) {
    const int shift = 64 - 8 * type.bytes;
    if (type.is_signed) return fmt::format("{}", static_cast<std::int64_t>(bits << shift) >> shift);
    return fmt::format("{}", bits);
  }
  if (is_integer(*type.type)) return fmt::format("{}", widen_integer(*type.type, bits));
  const std::string hex = fmt::format("0x{:0{}X}", bits, 2 * type.bytes);
  if (type.bytes == 4) return fmt::format("{} ({})", static_cast<float>(widen(*type.type, bits)), hex);
  return fmt::format("{} ({})", widen(*type.type, bits), hex);
}

}  // namespace

std::optional<std::int64_t> element_bytes(std::string_view name) {
  const std::optional<ElementType> type = element_type(name);
  return type ? std::optional<std::int64_t>(type->parts * type->bytes) : std::nullopt;
}

Result<std::optional<ElementDifferences>> element_differences(const Trace& a, const TracedArray& in_a,
                                                              std::int64_t first_a, const Trace& b,
                                                              const TracedArray& in_b, std::int64_t first_b,
                                                              std::int64_t rows) {
  const ElementType type = *element_type(in_a.type);
  const std::int64_t columns = in_a.columns() * type.parts, row_bytes = columns * type.bytes;
  const std::int64_t at_once = std::max<std::int64_t>(1, (std::int64_t{16} << 20) / row_bytes);
  std::optional<ElementDifferences> found;
  std::vector<std::byte> x, y;
  for (std::int64_t row = 0; row < rows; row += at_once) {
    const std::int64_t some = std::min(at_once, rows - row);
    x.resize(static_cast<std::size_t>(some * row_bytes)), y.resize(x.size());
    TRIREME_CHECK(a.elements(in_a, (first_a + row) * row_bytes, x));
    TRIREME_CHECK(b.elements(in_b, (first_b + row) * row_bytes, y));
    if (x == y) continue;
    for (std::int64_t k = 0; k < some * columns; ++k) {
      const std::uint64_t p = bits_at(type, x.data() + k * type.bytes), q = bits_at(type, y.data() + k * type.bytes);
      if (p == q) continue;
      const std::optional<std::uint64_t> ulps = ulps_between(type, p, q);
      if (!found)
        found = ElementDifferences{.row = first_a + row + k / columns,
                                   .column = k % columns / type.parts,
                                   .a = text_of(type, p),
                                   .b = text_of(type, q),
                                   .ulps = ulps};
      ++found->count;
      if (ulps) found->most_ulps = std::max(found->most_ulps.value_or(0), *ulps);
    }
  }
  return found;
}

}  // namespace trireme::drift
