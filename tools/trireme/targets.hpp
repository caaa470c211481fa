// How options name targets.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program_options.hpp"
#include "schedule/kernel.hpp"
#include "targets/targets.hpp"

namespace trireme::cli {

// The value that an option's word names.
template <typename T, std::size_t count>
Result<T> one_of(const std::pair<std::string_view, T> (&names)[count], std::string_view option, std::string_view word) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (name == word) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return Error{Code::InvalidArgument, std::string(option) + ": '" + std::string(word) + "' is none of " + known};
}

template <typename T, std::size_t count>
std::vector<std::string> words_of(const std::pair<std::string_view, T> (&names)[count]) {
  std::vector<std::string> words;
  for (const auto& each : names) words.emplace_back(each.first);
  return words;
}

// The table of targets, for help texts and for completion.
std::string target_help();  // "ptx, x86 or wasm"
std::vector<std::string> target_words();
std::string arch_help();
std::vector<std::string> arch_words();

}  // namespace trireme::cli
