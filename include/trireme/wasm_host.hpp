// Runs kernel modules (docs/kernel-abi.md) that nobody trusts, in wasmtime: limits on memory, time and stack; whatever
// a module does wrong is an error here, and the process goes on.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/export.hpp"
#include "trireme/result.hpp"

namespace trireme {

struct WasmLimits {
  std::int64_t memory_bytes = std::int64_t{1} << 30;  // of the module and everything given to it; at most 4 GiB
  double seconds = 10;                   // for one call, whatever it runs of the module; for loading, once compiled
  std::int64_t stack_bytes = 512 << 10;  // 64 KiB to 1 MiB; the calling thread must have as much to spare

  // Compiling cannot be interrupted. What its time and memory depend on is therefore counted before, and a module that
  // has more is refused. docs/kernel-abi.md says what these allow at worst, and what modules have.
  std::int64_t module_bytes = 4 << 20;
  std::int64_t declarations = 1000;  // types, globals, exports, data segments, element segments: of each so many
  std::int64_t parameters = 32;      // of a type
  std::int64_t table_elements = 10000;
  std::int64_t functions = 1000;
  // Of all functions together, and of any one.
  std::int64_t code_bytes = 256 << 10, function_bytes = 64 << 10;
  std::int64_t locals = 16384, function_locals = 2048;       // parameters among them
  std::int64_t branches = 4096, function_branches = 512;     // blocks, targets, and what compiles to branches
  std::int64_t crossings = 1 << 18;                          // branches x locals that live across them
  std::int64_t merges = 1 << 15, function_merges = 1 << 13;  // values that meet where control flow joins
  std::int64_t function_bulk_operations = 16;  // memory.copy, memory.fill: no time limit stops one that has begun
  std::int64_t nesting = 256;                  // of blocks
};

// The descriptor of a call. Arrays are copied in, and results out, so that the module never sees the caller's memory.
struct WasmKernelCall {
  struct Region {  // of version 1.1: its offset and size are written into params, from byte `params_at` on
    std::size_t params_at;
    std::span<const std::byte> input;
    std::span<std::byte> output;  // where the region is a result; `input` is empty then
  };
  std::span<const std::byte> a, b;
  std::span<std::byte> output, scratch;  // scratch may be empty
  std::span<const std::byte> params;
  std::vector<Region> regions;
};

// One module. One thread at a time may use it; different ones are independent of each other.
class TRIREME_API WasmKernel {
 public:
  struct Info {
    std::string name;
    std::array<int, 3> version = {};
    bool supports_backward = false;
  };
  WasmKernel(WasmKernel&&) noexcept;
  WasmKernel& operator=(WasmKernel&&) noexcept;
  ~WasmKernel();

  const Info& info() const;
  // kernel_init(params), the entry, kernel_cleanup(). Results are written if all of them return 0, else nothing is.
  //   InvalidArgument: the module refused (codes 1 to 3)     OutOfMemory: the limit, or code 4
  //   InvalidProgram:  a trap, the time limit, other codes   Unsupported: code 5
  // A module that trapped starts afresh with the next call.
  Status forward(const WasmKernelCall& call);
  Status backward(const WasmKernelCall& call);

 private:
  friend class WasmHost;
  struct State;
  explicit WasmKernel(std::unique_ptr<State> state);
  Status run(bool backward, const WasmKernelCall& call);
  std::unique_ptr<State> state_;
};

// wasmtime's library, opened at run time.
class TRIREME_API WasmHost {
 public:
  // Empty: TRIREME_WASMTIME, else the wheel `wasmtime` of the active or the system's python, else libwasmtime.so.
  // NoDevice: there is none. Unsupported: it is none of the versions 25 to 59.
  static Result<WasmHost> open(const std::string& library = {});

  WasmHost(const WasmHost&) = default;  // a move is a copy, so that no host is ever empty
  WasmHost& operator=(const WasmHost&) = default;
  const std::string& library() const;
  int version() const;

  // InvalidProgram: not valid, or not a kernel module: it imports something, or lacks an export; the message says
  // which.
  Result<WasmKernel> load(std::span<const std::uint8_t> module, const WasmLimits& limits = {}) const;

 private:
  struct State;
  explicit WasmHost(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace trireme
