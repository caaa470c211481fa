// The settings that Trireme takes from the environment. Each is one line of a table, which `trireme --help`, `doctor`
// and the tests walk; a value that a setting does not take is an error that names the setting and what it takes. Words
// count in any case. An empty variable is one that is not set.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::environment {

// What a variable holds; empty where it is not set, and in programs with another user's rights, which do not take the
// caller's word.
std::string variable(const char* name);

// The instruction sets as settings name them, each with what the ones before it have.
inline constexpr std::string_view instruction_sets[] = {"avx2", "avx512", "avx512_bf16"};

// TRIREME_HIDE: the first of instruction_sets that the processor is to be taken not to have; those behind it go with
// it.
Result<std::optional<std::size_t>> first_hidden();

struct Setting {
  const char* name;
  const char* values;   // as help shows them
  const char* meaning;  // and what holds where it is not set
  Status (*check)();
};

std::span<const Setting> settings();

}  // namespace trireme::environment
