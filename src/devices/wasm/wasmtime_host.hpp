// Runs jobs in wasmtime, inside this process.
#pragma once
#include "devices/wasm/job.hpp"
#include "devices/wasm/sandbox.hpp"

namespace trireme::wasm {

// The library, opened once and kept.
Result<std::shared_ptr<const Wasmtime>> wasmtime();

// Empty where modules can be run, else the reason why not. `relaxed`: those that need relaxed_madd, and that fused.
std::string wasmtime_missing(bool relaxed);

Result<std::unique_ptr<Sandbox>> compile_in_wasmtime(std::span<const std::uint8_t> module);

// The sandbox is that of job.module. Internal: the module trapped, or wrote outside its buffers.
Status run_in_wasmtime(const Sandbox& sandbox, const Job& job);

}  // namespace trireme::wasm
