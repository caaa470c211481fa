#include "devices/cache/key.hpp"

#include "ir/contract.hpp"

namespace trireme {

CacheKey::CacheKey(std::string_view kind, std::string_view title)
    : title_(std::string(kind) + " " + std::string(title)) {
  with("kind", kind).with("trireme", TRIREME_VERSION).with("contract", contract::version);
}

// Lengths stand before texts, so that no two lists of parts read the same.
CacheKey& CacheKey::with(std::string_view name, std::string_view value) {
  for (std::string_view text : {name, value}) {
    std::uint64_t length = text.size();
    hasher_.add(&length, sizeof length).add(text);
  }
  return *this;
}

CacheKey& CacheKey::with(std::string_view name, std::int64_t value) { return with(name, std::to_string(value)); }

}  // namespace trireme
