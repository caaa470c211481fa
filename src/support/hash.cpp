#include "support/hash.hpp"

#include <cstring>
#include <new>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace trireme {
namespace {

const XXH3_state_t* state_in(const unsigned char* memory) {
  return std::launder(reinterpret_cast<const XXH3_state_t*>(memory));
}

}  // namespace

Hasher::Hasher() {
  static_assert(sizeof state_ == sizeof(XXH3_state_t) && alignof(Hasher) >= alignof(XXH3_state_t));
  auto* state = new (state_) XXH3_state_t;
  XXH3_INITSTATE(state);
  XXH3_128bits_reset(state);
}

Hasher& Hasher::add(const void* data, std::size_t bytes) {
  XXH3_128bits_update(std::launder(reinterpret_cast<XXH3_state_t*>(state_)), data, bytes);
  return *this;
}

Hash128 Hasher::value() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_in(state_)));
  Hash128 hash;
  static_assert(sizeof hash == sizeof canonical.digest);
  std::memcpy(hash.data(), canonical.digest, sizeof hash);
  return hash;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (std::uint8_t byte : bytes)
    for (int nibble : {byte >> 4, byte & 15}) text += "0123456789abcdef"[nibble];
  return text;
}

std::string short_hex(const Hasher& hasher) { return hex(hasher.value()).substr(0, 16); }

}  // namespace trireme
