#include "support/sha256.hpp"

#include <bit>
#include <cstring>

namespace trireme {
namespace {

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::size_t block_bytes = 64;
using State = std::array<std::uint32_t, 8>;

void take_block(State& state, const unsigned char* block) {
  std::array<std::uint32_t, 64> words;
  for (std::size_t k = 0; k < 16; ++k)
    words[k] = static_cast<std::uint32_t>(block[4 * k]) << 24 | static_cast<std::uint32_t>(block[4 * k + 1]) << 16 |
               static_cast<std::uint32_t>(block[4 * k + 2]) << 8 | block[4 * k + 3];
  for (std::size_t k = 16; k < 64; ++k) {
    const std::uint32_t early = words[k - 15], late = words[k - 2];
    words[k] = words[k - 16] + (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) + words[k - 7] +
               (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t k = 0; k < 64; ++k) {
    const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                              round_constants[k] + words[k];
    const std::uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  const State next = {a, b, c, d, e, f, g, h};
  for (std::size_t k = 0; k < 8; ++k) state[k] += next[k];
}

}  // namespace

Hash256 sha256(const void* data, std::size_t bytes) {
  // The first 32 bits of the fractions of the square roots of the first 8 primes.
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto* text = static_cast<const unsigned char*>(data);
  const std::size_t whole = bytes / block_bytes * block_bytes, rest = bytes - whole;
  for (std::size_t at = 0; at < whole; at += block_bytes) take_block(state, text + at);
  // What is left, a bit that is 1, zeros, and the length in bits as the last 8 bytes.
  std::array<unsigned char, 2 * block_bytes> last = {};
  if (rest > 0) std::memcpy(last.data(), text + whole, rest);
  last[rest] = 0x80;
  const std::size_t end = rest + 9 > block_bytes ? 2 * block_bytes : block_bytes;
  const std::uint64_t length = static_cast<std::uint64_t>(bytes) * 8;
  for (std::size_t k = 0; k < 8; ++k) last[end - 1 - k] = static_cast<unsigned char>(length >> 8 * k);
  for (std::size_t at = 0; at < end; at += block_bytes) take_block(state, last.data() + at);
  Hash256 hash;
  for (std::size_t k = 0; k < 32; ++k) hash[k] = static_cast<std::uint8_t>(state[k / 4] >> (24 - 8 * (k % 4)));
  return hash;
}

}  // namespace trireme
