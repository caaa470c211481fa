// The digest of a run's results: XXH3-128 over the elements of every result in order, as stored, row-major and without
// gaps, each NaN in the canonical bits of its type.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "layout/array.hpp"
#include "layout/buffers.hpp"

namespace trireme {

struct DigestPart {
  Array array;
  std::int64_t row_extent = 0, column_extent = 0;
};

// The pattern of the type's NaN, or the bits as they are.
std::uint64_t canonical_bits(Type type, std::uint64_t bits);

std::string digest(std::span<const DigestPart> results);  // 32 hex digits, high first
std::string digest(std::span<const Buffer> results);

}  // namespace trireme
