// Kernel to a WebAssembly module, SIMD128.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/kernel.hpp"
#include "trireme/result.hpp"

namespace trireme::wasm {

// Values of the compute type a v128 holds.
constexpr int lanes(trireme::Type compute) { return 16 / static_cast<int>(bytes(compute)); }

struct Options {
  bool relaxed = false;  // fma by relaxed_madd, for engines where a probe shows it fused; else by exact emulation
};

// A module that imports nothing and exports memory and functions rows(args, first, last, total) and, if there is one,
// columns(args, first, last); args is the address of the slots (8 bytes each; addresses are 32-bit), the rest i64.
Result<std::vector<std::uint8_t>> emit(const Kernels& kernels, const Options& options = {});
Result<std::string> listing(const Kernels& kernels, const Options& options = {});  // the same in the text format

}  // namespace trireme::wasm
