// Programs as WebAssembly modules, run in wasmtime or in node.
#pragma once
#include <optional>

#include "devices/arguments.hpp"
#include "devices/wasm/node_host.hpp"
#include "devices/wasm/wasmtime_host.hpp"
#include "targets/targets.hpp"
#include "targets/wasm/emit.hpp"

namespace trireme::wasm {

// A problem copied to where a module can have it. Arrays that share memory, as in-place results and packed rows do,
// share it in the copy. Run `job`, alone or with others, then call finish().
struct Staged {
  Job job;
  Status finish() const;  // copies the results' elements back, and nothing between them

 private:
  friend class WasmExecutable;
  struct Range {  // of the caller's memory
    const std::byte* begin;
    const std::byte* end;
    std::vector<std::uint8_t> copy;
  };
  struct Result2d {
    Array array;
    std::int64_t row_extent, column_extent;
  };
  const Range& range_of(const void* address) const;
  std::vector<Range> ranges_;
  std::vector<Result2d> results_;
};

enum class Engine : std::uint8_t { Wasmtime, Node };

class WasmExecutable : public Executable {
 public:
  static Result<std::unique_ptr<WasmExecutable>> create(const Program& program, const Config& config,
                                                        const Options& options, Engine engine = Engine::Node);
  Status run(const Problem2d& problem, const RunOptions& options) override;
  std::string describe() const override;
  // The executable must outlive it.
  Result<Staged> stage(const Problem2d& problem, const RunOptions& options) const;

 private:
  WasmExecutable(Program program, Compiled compiled, Options options)
      : program_(std::move(program)),
        config_(std::move(compiled.config)),
        kernels_(std::move(compiled.kernels)),
        options_(options),
        module_(std::move(compiled.artifact.bytes)) {}
  Program program_;
  Config config_;
  Kernels kernels_;
  Options options_;
  std::vector<std::uint8_t> module_;
  std::unique_ptr<Sandbox> sandbox_;  // where the engine is wasmtime
};

// Any: wasmtime where its library is found, else node.
enum class Choice : std::uint8_t { Any, Node };
std::string missing(Choice choice, bool relaxed);

std::vector<DeviceEntry> devices();  // in any, the same with relaxed SIMD, in node

}  // namespace trireme::wasm
