// Runs WebAssembly kernels in `node`, a process of its own: the engine that machines without wasmtime's library have.
// Starting it takes a tenth of a second, so jobs are run many at a time.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "devices/wasm/job.hpp"

namespace trireme::wasm {

struct NodeOptions {
  int timeout_seconds = 600;  // for all jobs together
};

// One status a job. NoDevice: there is no node on PATH. Unsupported: its thread flushes subnormals, or relaxed_madd is
// missing or not fused. Driver: node failed, or ran out of time. Internal: the module is not valid, trapped, or wrote
// outside its buffers.
std::vector<Status> run_in_node(std::span<const Job> jobs, const NodeOptions& options = {});
inline Status run_in_node(const Job& job, const NodeOptions& options = {}) {
  return run_in_node(std::span(&job, 1), options)[0];
}

// Empty where modules can be run, else the reason why not.
std::string node_missing();

}  // namespace trireme::wasm
