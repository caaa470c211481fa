#include "targets.hpp"

#include <fmt/format.h>

#include "trireme/emit.hpp"

namespace trireme::cli {
std::string target_help() {
  std::string text;
  const auto all = targets();
  for (std::size_t k = 0; k < all.size(); ++k)
    text += fmt::format("{}{}", k == 0 ? "" : k + 1 < all.size() ? ", " : " or ", all[k]->name);
  return text;
}

std::vector<std::string> target_words() { return emit_targets(); }

std::string arch_help() {
  std::string text;
  for (const Target* each : targets())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", each->name, each->archs);
  return text;
}

std::vector<std::string> arch_words() {
  std::vector<std::string> words;
  for (const Target* each : targets()) words.insert(words.end(), each->common_archs.begin(), each->common_archs.end());
  return words;
}

}  // namespace trireme::cli
