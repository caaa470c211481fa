// The numbers of the contract: what every target must agree on to give the same bits. They depend on no hardware.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

namespace trireme::contract {

// Of docs/contract.md. What changes the bits of any result is a new version: contract/vectors holds them.
inline constexpr int version = 1;

// A row sum is a halving tree inside stripes of 256 columns, then neighbouring pairs of stripes.
inline constexpr std::int64_t stripe = 256;
constexpr std::int64_t stripes(std::int64_t columns) { return (columns + stripe - 1) / stripe; }

// A column sum adds the rows of a block in order, then neighbouring pairs of blocks: how many rows make a block,
// when `rows` rows share each of `entries` entries. Long rows get few blocks, because a block's partial sums are
// written and read once more; short rows get many, because blocks are what runs side by side. Measured on an H200 with
// bench/row_block (docs/performance.md): up to 8192 columns the best count was a power of two near 2^20 / columns
// (256 at 2880, 128 at 7168); beyond, rows take clusters of 2, 4, 8 processors, of which 60, 30, 15 fit at once, and
// one more block than fits costs a third of the speed.
constexpr std::int64_t row_block(std::int64_t rows, std::int64_t entries) {
  auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  entries = std::max<std::int64_t>(entries, 1);
  std::int64_t blocks = entries <= 8192 ? static_cast<std::int64_t>(std::bit_floor(std::min<std::uint64_t>(
                                              8192, (1u << 20) / static_cast<std::uint64_t>(entries))))
                                        : std::max<std::int64_t>(8, std::min<std::int64_t>(120, (15 << 17) / entries));
  return std::max<std::int64_t>({1, ceil_div(rows, blocks), std::min<std::int64_t>(16, ceil_div(rows, 128))});
}

constexpr std::int64_t row_blocks(std::int64_t rows, std::int64_t entries) {
  std::int64_t block = row_block(rows, entries);
  return (rows + block - 1) / block;
}

}  // namespace trireme::contract
