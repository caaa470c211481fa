#include "plan/difference.hpp"

#include <fmt/format.h>

#include "layout/elements.hpp"
#include "problem/digest.hpp"

namespace trireme {

std::string element_name(const Output& result, std::int64_t row, std::int64_t column) {
  bool by_row = result.spread.row.present, by_column = result.spread.column.present;
  if (by_row && by_column) return fmt::format("{}[{},{}]", result.name, row, column);
  if (by_row) return fmt::format("{}[{}]", result.name, row);
  return by_column ? fmt::format("{}[{}]", result.name, column) : result.name + "[]";
}

KeptResults keep_results(const Prepared& prepared) {
  KeptResults kept;
  for (const Buffer& buffer : prepared.buffers.results) kept.emplace_back(buffer.memory.begin(), buffer.memory.end());
  return kept;
}

std::optional<Difference> first_difference(const Prepared& prepared, const KeptResults& wanted) {
  for (std::size_t k = 0; k < prepared.buffers.results.size(); ++k) {
    const Buffer& buffer = prepared.buffers.results[k];
    const Type type = buffer.array.type;
    Array kept = buffer.array;
    kept.data = const_cast<std::byte*>(wanted[k].data()) +  // only read
                (static_cast<std::byte*>(buffer.array.data) - buffer.memory.data());
    for (std::int64_t r = 0; r < buffer.row_extent; ++r)
      for (std::int64_t c = 0; c < buffer.column_extent; ++c) {
        const std::uint64_t got = bits_at(buffer.array, r, c), want = bits_at(kept, r, c);
        if (canonical_bits(type, got) == canonical_bits(type, want)) continue;
        auto hex = [&](std::uint64_t bits) { return fmt::format("0x{:0{}X}", bits, trireme::bits(type) / 4); };
        return Difference{element_name(prepared.bound.results[k], r, c), hex(got), hex(want)};
      }
  }
  return std::nullopt;
}

}  // namespace trireme
