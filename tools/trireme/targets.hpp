// The compilation targets by name: lowered kernels, listings, and the bytes of an artifact.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program_options.hpp"
#include "schedule/kernel.hpp"
#include "targets/wasm/emit.hpp"

namespace trireme::cli {

enum class Target : std::uint8_t { Ptx, X86, Wasm };

inline constexpr std::pair<std::string_view, Target> target_names[] = {
    {"ptx", Target::Ptx}, {"x86", Target::X86}, {"wasm", Target::Wasm}};

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

// How the architectures are called, for help texts and for completion.
inline constexpr const char* arch_help =
    "ptx: sm_80 (default) and up; x86: avx2 (default), avx512 or avx512_bf16; wasm: simd128 (default) or relaxed";

inline std::vector<std::string> arch_words() {
  return {"sm_80", "sm_90", "sm_100", "sm_120", "avx2", "avx512", "avx512_bf16", "simd128", "relaxed"};
}

Result<wasm::Options> wasm_options(std::string_view arch);

struct Lowered {
  Target target;
  std::string arch;
  Config config;
  Kernels kernels;
};

// An empty arch is the target's default.
Result<Lowered> lower_for(const BoundProgram& bound, Target target, std::string arch);

std::string print(const Lowered& lowered);            // config and kernels
Result<std::string> listing(const Lowered& lowered);  // in the target's own words

// PTX text, raw x86 code, a WebAssembly module.
struct Artifact {
  std::vector<std::uint8_t> bytes;
  std::int64_t columns_entry = -1;  // x86: where the columns kernel begins, if there is one
};
// `manifest`: for the custom section of a WebAssembly module.
Result<Artifact> make_artifact(const Lowered& lowered, const std::string& manifest = {});

}  // namespace trireme::cli
