// The kernel ABI of docs/kernel-abi.md: WebAssembly modules for hosts that know the page and nothing of Trireme.
// A module holds ordinary kernels of a few programs, and around them entries that check what a host gives them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.hpp"
#include "targets/wasm/emit.hpp"
#include "trireme/result.hpp"

namespace trireme {

// An array that an entry reads or writes. f32 throughout.
struct AbiArray {
  enum class Extent : std::uint8_t { Elements, Rows, Columns };
  std::string_view name;  // in the entry's program
  Extent extent = Extent::Elements;
  bool is_result = false;
  std::string_view needs = {};  // an optional operand without which this result cannot be had
};

// Where an entry's arrays come from: the descriptor's a, b and output; scratch, if it holds a value a row; and, in
// params of version 1.1, pairs (offset, size) from byte 16 on, size 0 for absent.
struct AbiEntry {
  std::string_view text;  // of the program
  AbiArray a, b, output;
  std::string_view in_scratch = {};  // a result per row
  std::vector<AbiArray> optional = {};
};

struct KernelAbi {
  std::string_view program;  // on the command line
  std::string_view name;     // in kernel_info
  std::uint32_t rows_at, columns_at;
  std::string_view value = {};  // an operand [] that is read from the params
  std::uint32_t value_at = 0;
  bool sizes_agree = false;  // of a, b and output
  AbiEntry forward, backward;

  std::uint32_t full_params_bytes() const { return 16 + 8 * static_cast<std::uint32_t>(backward.optional.size()); }
};
std::span<const KernelAbi> kernel_abis();

Result<std::vector<std::uint8_t>> emit_kernel_abi(std::string_view program, std::string_view arch = {});
const Target& kernel_abi_target();

}  // namespace trireme
