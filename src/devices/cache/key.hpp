// What an artifact was made from. Equal keys mean equal artifacts, so everything that can change one is a part of its
// key; Trireme's version and the contract's always are.
//
//   CacheKey key = CacheKey("cubin", "rms_norm, sm_90").with("ptx", text).with("architecture", 90).with("driver",
//   12080);
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "support/hash.hpp"

namespace trireme {

class CacheKey {
 public:
  // The title is for people (`trireme cache list`), and is no part of the key.
  CacheKey(std::string_view kind, std::string_view title);

  CacheKey& with(std::string_view name, std::string_view value);
  CacheKey& with(std::string_view name, std::int64_t value);

  Hash128 hash() const { return hasher_.value(); }
  const std::string& title() const { return title_; }  // "cubin rms_norm, sm_90"

 private:
  Hasher hasher_;
  std::string title_;
};

}  // namespace trireme
