// What compiling a WebAssembly module costs, judged before anybody compiles it: engines cannot be interrupted there,
// and 15 kB can keep one busy for minutes. A strict reader of sections and instructions counts what time and memory
// depend on, and stops where there is too much of it; it takes linear time itself.
//
// It knows WebAssembly 2.0 and relaxed SIMD, less what the sandbox switches off (several memories, tables or results,
// 64-bit memory, threads, tail calls, exceptions, garbage collection). Whether the rest is valid the engine decides.
#pragma once
#include <cstdint>
#include <span>

#include "trireme/wasm_host.hpp"

namespace trireme::wasm {

struct ModuleCounts {  // as the limits of the same names
  std::int64_t declarations = 0, parameters = 0, table_elements = 0, functions = 0, nesting = 0;
  std::int64_t code_bytes = 0, function_bytes = 0;
  std::int64_t locals = 0, function_locals = 0;
  std::int64_t branches = 0, function_branches = 0;
  std::int64_t crossings = 0;
  std::int64_t merges = 0, function_merges = 0;
  std::int64_t function_bulk_operations = 0;
};

// InvalidProgram: it is no module, imports something, uses what is switched off, or has more than a limit allows; the
// message says of what. The counts are for whoever chooses limits.
Result<ModuleCounts> count_module(std::span<const std::uint8_t> module, const WasmLimits& limits);

}  // namespace trireme::wasm
