// Usage: kernel_hashes <LINES
// Which compiler it was compiled by, then for each line "TARGET ARCH PROBLEM-LINE" the hash of what is emitted, or why it
// is refused: what kernels.test.mjs compares between compilers.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "devices/arguments.hpp"
#include "plan/emission.hpp"
#include "support/hash.hpp"

namespace trireme {
namespace {

Result<std::string> hash_of(std::string_view target_name, std::string_view arch, std::string_view line) {
  TRIREME_TRY(target, find_target(target_name));
  TRIREME_TRY(problem, parse_problem(line));
  TRIREME_TRY(prepared, prepare_problem(problem, {}, Fill::NoMemory));
  TRIREME_TRY(emission, emit(prepared, facts_of(prepared.program, prepared.view()), *target, std::string(arch)));
  Hasher hasher;
  hasher.add(emission.bytes.data(), emission.bytes.size());
  return hex(hasher.value());
}

}  // namespace
}  // namespace trireme

int main() {
#ifdef __clang__
  fmt::print("clang\n");
#else
  fmt::print("g++\n");
#endif
  for (std::string target, arch, line; std::cin >> target >> arch && std::getline(std::cin, line);) {
    const trireme::Result<std::string> hash = trireme::hash_of(target, arch, line);
    fmt::print("{}\n", hash ? *hash : "refused: " + hash.error().message.substr(0, hash.error().message.find('\n')));
  }
}
