#include "problem/digest.hpp"

#include <vector>

#include "layout/elements.hpp"
#include "support/float_types.hpp"
#include "support/hash.hpp"

namespace trireme {

std::uint64_t canonical_bits(Type type, std::uint64_t bits) {
  if (is_integer(type)) return bits;
  const FloatFormat format = float_format(type);
  return format.is_nan(bits) ? format.nan() : bits;
}

std::string digest(std::span<const DigestPart> results) {
  Hasher hasher;
  std::vector<unsigned char> row;
  for (const DigestPart& part : results)
    for (std::int64_t r = 0; r < part.row_extent; ++r) {
      Type type = part.array.type;
      row.resize(static_cast<std::size_t>(part.column_extent) * bytes(type));
      for (std::int64_t c = 0; c < part.column_extent; ++c)
        store_bits(type, row.data() + static_cast<std::size_t>(c) * bytes(type),
                   canonical_bits(type, load_bits(type, part.array.entry(r, c))));
      hasher.add(row.data(), row.size());
    }
  return hex(hasher.value());
}

std::string digest(std::span<const Buffer> results) {
  std::vector<DigestPart> parts;
  for (const Buffer& buffer : results)
    parts.push_back(
        {in_bytes(buffer.array), buffer.row_extent, columns_in_bytes(buffer.array.type, buffer.column_extent)});
  return digest(parts);
}

}  // namespace trireme
