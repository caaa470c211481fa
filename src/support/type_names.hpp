// The storage types' names, listed for messages.
#pragma once
#include <string>

#include "trireme/type.hpp"

namespace trireme {

// "f64, f32 and u8", with " and " as `last`.
inline std::string type_names(std::string_view between, std::string_view last) {
  std::string list;
  for (const TypeFacts& each : type_facts) {
    if (!list.empty()) list += each.type == type_facts.back().type ? last : between;
    list += each.name;
  }
  return list;
}

}  // namespace trireme
