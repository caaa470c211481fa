// What a loader must know of a generic WebAssembly module, as JSON: its arrays, slots, scratch and workspace. It stands
// in the module's custom section "trireme", so that one file is enough. js/module.mjs reads it.
#pragma once
#include <span>
#include <string>

#include "ir/program.hpp"
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"

namespace trireme {

struct ManifestOptions {
  std::int64_t columns = 0;  // what the module was made with; binding where code or layout depends on it
  std::span<const double> constants;
  bool relaxed = false;  // it holds relaxed_madd: for engines where that is fused
};
Result<std::string> wasm_manifest(const Program& program, const Kernels& kernels, const Config& config,
                                  const ManifestOptions& options);

}  // namespace trireme
