// The settings that Trireme takes from the environment. Each is one line of a table, which `trireme --help`, `doctor`
// and the tests walk; a value that a setting does not take is an error that names the setting and what it takes. An
// empty variable is one that is not set. Words count in any case: on is also 1, yes, true; off is also 0, no, false. A
// path may begin with ~/, which is HOME's.
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

// TRIREME_THREADS: none where it is not set.
inline constexpr int most_threads = 4096;
Result<std::optional<int>> threads();

// TRIREME_ISA: the instruction set that 'cpu' runs on; empty where it is not set. Which names there are the table of
// devices says (plan/settings.hpp).
Result<std::string> isa();

// TRIREME_HIDE: instruction sets that the processor is to be taken not to have. Which names there are the targets say.
Result<std::vector<std::string>> hidden();

// TRIREME_CACHE: a folder, or none at all; neither where it is not set, or only switched on.
struct CachePlace {
  bool off = false;
  std::string folder = {};
};
Result<CachePlace> cache();

Result<bool> verbose();  // TRIREME_VERBOSE

Result<bool> perf_map();  // TRIREME_PERF

// TRIREME_NVRTC and TRIREME_WASMTIME: a path, or a name that dlopen finds; empty where it is not set.
Result<std::string> nvrtc();
Result<std::string> wasmtime();

struct Setting {
  const char* name;
  const char* values;   // as help shows them
  const char* meaning;  // and what holds where it is not set
  Status (*check)();
};

std::span<const Setting> settings();

// What is wrong with a setting's value: the setting "is `takes`, not '…'".
Error wrong(const char* name, const std::string& takes);

// The first setting whose value is wrong. Whoever makes plans or kernels asks this first: a value that nobody
// understands is never passed over.
Status check();

}  // namespace trireme::environment
