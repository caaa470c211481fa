// What a loader must know of an artifact, as JSON: its arrays, slots, scratch and workspace. In a WebAssembly module it
// stands in the custom section "trireme", so that one file is enough; js/module.mjs reads it there.
#pragma once
#include <span>
#include <string>

#include "ir/program.hpp"
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"

namespace trireme {

struct ManifestOptions {
  std::int64_t columns = 0;  // what the artifact was made with; binding where code or layout depends on it
  std::span<const double> constants;
  const Program* bound = nullptr;  // has the arrays' types as callers know them: f4e2m1 for packed bytes
  std::string of_target = {};      // members of the target's own, each with a comma behind it
};
Result<std::string> manifest_of(const Program& program, const Kernels& kernels, const Config& config,
                                const ManifestOptions& options);

}  // namespace trireme
