// The compilation targets by name: what a program is scheduled for, and what its kernels become. Each folder beside
// this file defines its entry; targets.cpp lists them. Whoever compiles for a target by its name walks this table.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/lower.hpp"
#include "trireme/result.hpp"

namespace trireme {

struct Artifact {
  std::vector<std::uint8_t> bytes;
  std::int64_t columns_entry = -1;  // of raw code: where the columns kernel begins, if there is one
  std::string hash() const;         // of the bytes
};

struct Target {
  enum class Form : std::uint8_t {
    Text,    // for an assembler or a driver; comments may stand before it
    Code,    // machine code, entered at its first byte
    Module,  // with exports, and a section that says what it holds
  };
  std::string_view name;
  Form form;
  std::string_view default_arch;
  std::string_view archs;  // for people
  std::span<const std::string_view> common_archs;

  // Each refuses an architecture that it does not know.
  Result<Machine> (*machine)(std::string_view arch);
  Result<Artifact> (*emit)(const Kernels& kernels, std::string_view arch, const std::string& manifest);
  Result<std::string> (*listing)(const Kernels& kernels, std::string_view arch);
  std::string (*entries)(const Kernels& kernels, const Artifact& artifact);  // how they are called, a line each
  // What a loader must know beyond what all targets have: members of a JSON object, each with a comma behind it.
  std::string (*manifest)(const Kernels& kernels, std::string_view arch);
};

std::span<const Target* const> targets();
Result<const Target*> find_target(std::string_view name);

// A program under one config, as a target spells it: what devices load.
struct Compiled : Lowered {
  Artifact artifact;
};
Result<Compiled> compile(const Program& program, const Config& config, const Target& target, std::string_view arch);

// What targets say of an architecture that they do not know.
Error unknown_arch(const Target& target, std::string_view arch);

}  // namespace trireme
