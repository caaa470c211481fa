// Kernel to A64 machine code with NEON: position-independent bytes, no device touched.
#pragma once
#include <cstdint>
#include <string_view>

#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "targets/machine_code.hpp"

namespace trireme::aarch64 {

extern const Target target;  // in the table of targets

// What every AArch64 processor has, and the same with FEAT_BF16, whose conversion is the contract's.
enum class Isa : std::uint8_t { Neon, NeonBf16 };
constexpr std::string_view arch_name(Isa isa) { return isa == Isa::Neon ? "neon" : "neon_bf16"; }

constexpr int register_bytes = 16;

// A simd kernel whose lanes fill a register.
Result<MachineCode> emit(const Kernel& kernel, Isa isa, bool with_listing = false);

}  // namespace trireme::aarch64
