// The bytes of one cache entry: a header with the key and a hash over all the rest, a title for people, the artifact.
// A file that is truncated, changed, empty, renamed or of another form does not decode; the reason says which.
#pragma once
#include <string>
#include <string_view>

#include "support/hash.hpp"
#include "trireme/result.hpp"

namespace trireme {

struct CacheEntry {
  Hash128 key{};
  std::string title;
  std::string artifact;
};

std::string encode_entry(const Hash128& key, std::string_view title, std::string_view artifact);
Result<CacheEntry> decode_entry(std::string_view file);

}  // namespace trireme
