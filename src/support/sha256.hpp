// SHA-256 (FIPS 180-4), for what is signed: digests by XXH3 find errors, and anyone can make two texts that share one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace trireme {

using Hash256 = std::array<std::uint8_t, 32>;

Hash256 sha256(const void* data, std::size_t bytes);

}  // namespace trireme
