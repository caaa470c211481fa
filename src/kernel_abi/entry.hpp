// What the functions of a kernel ABI module share: constants of the page, and the globals in which an entry leaves what
// it has checked for the function that calls the kernels.
#pragma once
#include <map>

#include "kernel_abi/module.hpp"

namespace trireme::abi {

inline constexpr std::uint32_t descriptor_bytes = 40, info_bytes = 16, v1_params_bytes = 12, reserved_at = 12;
inline constexpr int invalid_input = 1, invalid_output = 2, invalid_params = 3, out_of_memory = 4;

// The window: memory a call borrows from its host and gives back as it was. Slots first, then two values, then scratch.
inline constexpr std::uint32_t slots_bytes = 192, value_at = 192, unwanted_rms_at = 196, scratch_at = 256;
inline constexpr std::uint32_t borrowed_step = 512;
// Its bytes lie on the engine's stack meanwhile, 4 for each stripe of 256 columns: 128 KiB for the longest row.
inline constexpr std::int64_t max_columns = 1 << 23;

struct Scratch {
  std::int64_t bytes = 0, bytes_per_stripe = 0;  // the most that any kernel of the module needs
};

// Mutable i32 globals by name: window, columns, rows, row_block, blocks, partial_stride, variant, value, scratch,
// scratch_stride, and the arrays by their names in the forward ("x") and in the backward ("backward x").
using Globals = std::map<std::string, wasm::Global, std::less<>>;
std::string global_name(bool backward, std::string_view array);

struct EntryParts {
  const KernelAbi& abi;
  bool backward = false;
  Scratch scratch;
  int first_variant = 0;  // number of the kernels of this entry with no optional array; bit k: array k is present
  const Globals& globals;
  wasm::Callee overlap, borrow;
};
Result<wasm::Body> write_entry(const EntryParts& parts);

}  // namespace trireme::abi
