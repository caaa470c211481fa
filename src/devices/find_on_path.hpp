// Where the shell would find a program.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "support/environment.hpp"

namespace trireme {

inline std::optional<std::string> find_on_path(const std::string& program) {
  const std::string path = environment::variable("PATH");
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, end)) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

}  // namespace trireme
