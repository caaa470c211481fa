// Kernel to A64 machine code with NEON: position-independent bytes, no device touched.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "trireme/result.hpp"

namespace trireme {
struct Target;
}

namespace trireme::aarch64 {

extern const Target target;  // in the table of targets

// What every AArch64 processor has, and the same with FEAT_BF16, whose conversion is the contract's.
enum class Isa : std::uint8_t { Neon, NeonBf16 };
constexpr std::string_view arch_name(Isa isa) { return isa == Isa::Neon ? "neon" : "neon_bf16"; }

constexpr int register_bytes = 16;

struct Code {
  std::vector<std::uint8_t>
      bytes;            // entry at offset 0: void(const std::uint64_t* args, i64 first, i64 last, i64 total)
  std::string listing;  // assembler text with the kernel's structure as comments; only if asked for
};

// A simd kernel whose lanes fill a register.
Result<Code> emit(const Kernel& kernel, Isa isa, bool with_listing = false);

}  // namespace trireme::aarch64
