// Digests of arrays by blocks of rows, and the tree over them. docs/receipts.md is their specification.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/result.hpp"
#include "trireme/type.hpp"

namespace trireme::receipts {

// XXH3 finds errors; what is signed is digested by SHA-256.
enum class Hash : std::uint8_t { Xxh3, Sha256 };
std::string_view name(Hash hash);
Result<Hash> hash_named(std::string_view name);
std::size_t digits(Hash hash);  // of a digest, in hex
std::string digest_of(Hash hash, const void* data, std::size_t bytes);

// Rows of a block of an array that has `rows`: the least power of two that makes at most 1024 blocks.
std::int64_t block_rows(std::int64_t rows);
inline constexpr std::int64_t most_blocks = 1024;

// `rows` rows of `columns` entries, row-major and without gaps.
struct ArrayDigests {
  std::string name;
  Type type = Type::F32;
  std::int64_t rows = 0, columns = 0;
  std::string digest;               // of the tree over the blocks'
  std::vector<std::string> leaves;  // of each block of rows

  std::int64_t row_bytes() const { return columns * bits(type) / 8; }
  std::int64_t block() const { return block_rows(rows); }
  std::int64_t blocks() const { return (rows + block() - 1) / block(); }
  std::int64_t block_end(std::int64_t first) const { return first + block() < rows ? first + block() : rows; }
};

// An array of a caller's: reads whole rows, row-major and without gaps, from `first_row` on.
using ReadRows = std::function<Status(std::int64_t first_row, std::span<std::byte> rows)>;

// Whole rows of an array of this type. Writes the canonical bits of its type over each NaN.
std::string digest_rows(Hash hash, Type type, std::span<std::byte> rows);
std::string root_of(Hash hash, const std::vector<std::string>& leaves);

// Reads the array a block at a time.
Status take_digests(Hash hash, ArrayDigests& array, const ReadRows& read);

}  // namespace trireme::receipts
