#include "receipt/array_digests.hpp"

#include <bit>
#include <cstring>

#include "support/hash.hpp"
#include "support/sha256.hpp"

namespace trireme::receipts {
namespace {

template <typename Bits>
void make_nans_canonical(const FloatFormat& format, std::span<std::byte> entries) {
  const auto mask = static_cast<Bits>(format.magnitude_mask()), nan = static_cast<Bits>(format.nan());
  const auto largest = static_cast<Bits>(format.infinities ? format.infinity() : format.largest_finite());
  for (std::size_t at = 0; at < entries.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, entries.data() + at, sizeof bits);
    bits = static_cast<Bits>(bits & mask) > largest ? nan : bits;
    std::memcpy(entries.data() + at, &bits, sizeof bits);
  }
}

std::string bytes_of(const std::string& digits) {
  std::string made;
  auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  for (std::size_t k = 0; k + 1 < digits.size(); k += 2)
    made += static_cast<char>(value(digits[k]) << 4 | value(digits[k + 1]));
  return made;
}

}  // namespace

std::string_view name(Hash hash) {
  switch (hash) {
    case Hash::Xxh3: return "xxh3-128";
    case Hash::Sha256: return "sha256";
  }
  return "";
}

Result<Hash> hash_named(std::string_view text) {
  for (const Hash hash : {Hash::Xxh3, Hash::Sha256})
    if (name(hash) == text) return hash;
  return Error{Code::InvalidArgument, "digests by '" + std::string(text) + "'; this version knows xxh3-128 and sha256"};
}

std::size_t digits(Hash hash) { return hash == Hash::Xxh3 ? 2 * sizeof(Hash128) : 2 * sizeof(Hash256); }

std::string digest_of(Hash hash, const void* data, std::size_t bytes) {
  if (hash == Hash::Xxh3) return hex(Hasher().add(data, bytes).value());
  return hex(sha256(data, bytes));
}

std::int64_t block_rows(std::int64_t rows) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((rows + most_blocks - 1) / most_blocks)));
}

std::string digest_rows(Hash hash, Type type, std::span<std::byte> rows) {
  const FloatFormat& format = facts(type).format;
  if (!is_integer(type) && format.nans) switch (bits(type)) {
      case 64: make_nans_canonical<std::uint64_t>(format, rows); break;
      case 32: make_nans_canonical<std::uint32_t>(format, rows); break;
      case 16: make_nans_canonical<std::uint16_t>(format, rows); break;
      case 8: make_nans_canonical<std::uint8_t>(format, rows); break;
    }
  return digest_of(hash, rows.data(), rows.size());
}

std::string root_of(Hash hash, const std::vector<std::string>& leaves) {
  if (leaves.empty()) return digest_of(hash, nullptr, 0);
  std::vector<std::string> level = leaves;
  while (level.size() > 1) {
    std::vector<std::string> above;
    for (std::size_t k = 0; k + 1 < level.size(); k += 2) {
      const std::string children = bytes_of(level[k]) + bytes_of(level[k + 1]);
      above.push_back(digest_of(hash, children.data(), children.size()));
    }
    if (level.size() % 2) above.push_back(level.back());
    level = std::move(above);
  }
  return level[0];
}

Status take_digests(Hash hash, ArrayDigests& array, const ReadRows& read) {
  std::vector<std::byte> memory;
  array.leaves.clear();
  for (std::int64_t first = 0; first < array.rows; first += array.block()) {
    memory.resize(static_cast<std::size_t>((array.block_end(first) - first) * array.row_bytes()));
    TRIREME_CHECK(read(first, memory));
    array.leaves.push_back(digest_rows(hash, array.type, memory));
  }
  array.digest = root_of(hash, array.leaves);
  return Done{};
}

}  // namespace trireme::receipts
