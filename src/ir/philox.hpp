// Random numbers that every target agrees on: Philox4x32-10 (Salmon and others, SC 2011), a block cipher of a counter.
// The counter of element (i, j) is (j / 4, low and high half of i, the stream), the key is the seed, and the element
// takes word j % 4: a number depends on nothing but its place, so a backward draws what the forward drew.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

namespace trireme::philox {

inline constexpr int rounds = 10;
inline constexpr std::array<std::uint32_t, 2> multipliers = {0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::array<std::uint32_t, 2> key_steps = {0x9E3779B9u, 0xBB67AE85u};

using Block = std::array<std::uint32_t, 4>;

constexpr Block encrypt(Block counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t a = std::uint64_t{multipliers[0]} * counter[0], b = std::uint64_t{multipliers[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + key_steps[0], key[1] + key_steps[1]};
  }
  return counter;
}

// In [0, 1), a multiple of 2^-23: the same number in both compute types.
inline float uniform(std::int64_t seed, std::int64_t i, std::int64_t j, std::uint32_t stream) {
  auto low = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  auto high = [](std::int64_t value) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32); };
  const Block block = encrypt({low(j / 4), low(i), high(i), stream}, {low(seed), high(seed)});
  return std::bit_cast<float>(0x3F800000u | block[j % 4] >> 9) - 1.0f;
}

}  // namespace trireme::philox
