// Runs WebAssembly kernels in `node`, a process of its own: the engine that machines without wasmtime's library have.
// Starting it takes a tenth of a second, so jobs are run many at a time.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::wasm {

// A region of the module's memory, aligned to 64 bytes. The last one of a job ends where memory ends, so that an access
// beyond it traps; a write between regions is found and reported.
struct NodeBuffer {
  std::span<std::uint8_t> data;  // copied in before the calls and back after them; empty: neither
  std::size_t bytes = 0;         // where there is no data (scratch, workspace): how many, filled with 0xa5
};

struct NodeJob {
  struct Relocation {
    std::size_t slot, buffer;
    std::int64_t offset_bytes = 0;
  };
  struct Call {
    enum class Entry : std::uint8_t { Rows, Columns } entry = Entry::Rows;
    std::int64_t first = 0, last = 0, total = 0;  // columns have no total
  };

  std::span<const std::uint8_t> module;
  bool relaxed = false;  // the module needs relaxed_madd, and that fused
  std::vector<NodeBuffer> buffers;
  std::vector<std::uint64_t> slots;
  std::vector<Relocation> relocations;  // slots[slot] = address of the buffer + offset_bytes
  std::vector<Call> calls;              // in this order
};

struct NodeOptions {
  int timeout_seconds = 600;  // for all jobs together
};

// One status a job. NoDevice: there is no node on PATH. Unsupported: its thread flushes subnormals, or relaxed_madd is
// missing or not fused. Driver: node failed, or ran out of time. Internal: the module is not valid, trapped, or wrote
// outside its buffers.
std::vector<Status> run_in_node(std::span<const NodeJob> jobs, const NodeOptions& options = {});
inline Status run_in_node(const NodeJob& job, const NodeOptions& options = {}) {
  return run_in_node(std::span(&job, 1), options)[0];
}

// Empty where modules can be run, else the reason why not.
std::string node_missing();

}  // namespace trireme::wasm
