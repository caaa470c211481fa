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
// Then, of optional operands that stand in, 1.0 where they are present.
inline constexpr std::uint32_t there_at = 200;
constexpr std::uint32_t borrowed_step(bool compact) { return compact ? 128 : 512; }  // bytes a level of the stack
// Its bytes lie on the engine's stack meanwhile, 4 for each stripe of 256 columns: 128 KiB for the longest row.
inline constexpr std::int64_t max_columns = 1 << 23;

struct Scratch {
  std::int64_t bytes = 0, bytes_per_stripe = 0;  // the most that any kernel of the module needs
};

// Mutable i32 globals by name: window, columns, rows, row_block, blocks, partial_stride, variant, value, scratch,
// scratch_stride, and what a call touches, in order: a, b, output, the optional arrays, scratch. The arrays have their
// names in the forward ("x") and in the backward ("backward x") beside.
using Globals = std::map<std::string, wasm::Global, std::less<>>;
std::string global_name(bool backward, std::string_view array);
std::string place_name(std::size_t k);
std::string place_bytes_name(std::size_t k);

// Compact modules have no kernels of their own for an entry without such an operand: another array's memory stands in
// for it, and the kernels choose between what is there and its default.
bool stands_in(const AbiEntry& entry, const AbiArray& array);
std::string there_name(std::string_view array);  // the global: 1 where it is present

struct EntryParts {
  const KernelAbi& abi;
  bool backward = false;
  bool compact = false;
  Scratch scratch;
  int first_variant = 0;  // number of the kernels of this entry with no optional array; bit k: array k is present
  const Globals& globals;
  std::size_t places = 0;  // that have globals
  wasm::Callee overlap, clash_end, borrow;
};
Result<wasm::Body> write_entry(const EntryParts& parts);

}  // namespace trireme::abi
