// Sample values: a pure function of (seed, operand's name, element's index), easily said again in other languages.
//
//   fnv(name)   = h = 0x811C9DC5; for each byte: h = (h ^ byte) * 0x01000193
//   mix(h)      = h ^= h >> 16; h *= 0x85EBCA6B; h ^= h >> 13; h *= 0xC2B2AE35; h ^= h >> 16
//   key         = mix(fnv(name) ^ mix(seed))
//   draw(index) = mix(mix(low 32 bits of index ^ key) + high 32 bits of index * 0x9E3779B9 + key)
//
// all in unsigned 32-bit arithmetic that wraps. With h = draw(index), in f64 arithmetic:
//
//   integers:  low + h mod (high - low + 1)
//   numbers:   low + (h >> 8) * 2^-24 * (high - low), then rounded to f32;
//              for f64 operands low + ((h >> 8) * 2^29 + (mix(h) >> 3)) * 2^-53 * (high - low), not rounded
//
// and what comes out is stored in the operand's type. The index counts the operand's entries row-major, whatever their
// place in memory.
#pragma once
#include <cstdint>
#include <string_view>

#include "layout/array.hpp"

namespace trireme {

struct SampleRange {
  double low = -2, high = 2;
  bool integer = false;  // `high` included
  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

// Numbers in [-2, 2), powers of two from 1/8 on; integer types get whole numbers in -128..127, u8 in 0..255.
SampleRange default_range(Type type);

std::uint32_t sample_draw(std::uint32_t seed, std::string_view name, std::uint64_t index);
double sample_value(std::uint32_t draw, Type type, const SampleRange& range);

void fill_samples(const Array& array, std::int64_t row_extent, std::int64_t column_extent, std::uint32_t seed,
                  std::string_view name, const SampleRange& range);

// Of an operand that picks rows of a table: -1 + h mod (rows + 2), so that some lie on either side of it. Where rows
// are written no row comes twice: (index + key mod rows) mod rows, and -1 once all had their turn.
void fill_picks(const Array& array, std::int64_t row_extent, std::uint32_t seed, std::string_view name,
                std::int64_t table_rows, bool once);

}  // namespace trireme
