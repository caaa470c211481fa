// XXH3-128: the one hash of digests, cache keys and cache entries.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

using Hash128 = std::array<std::uint8_t, 16>;  // most significant byte first

class Hasher {
 public:
  Hasher();
  Hasher& add(const void* data, std::size_t bytes);
  Hasher& add(std::string_view text) { return add(text.data(), text.size()); }
  Hash128 value() const;  // of everything so far

 private:
  alignas(64) unsigned char state_[576];
};

std::string hex(std::span<const std::uint8_t> bytes);
std::string short_hex(const Hasher& hasher);  // 16 digits: enough to tell kernels apart

}  // namespace trireme
