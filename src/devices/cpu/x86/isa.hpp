// Which instruction sets this x86 machine runs: the processor must have them and the system must save their registers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "targets/x86/emit.hpp"

namespace trireme::cpu {

// What CPUID and XGETBV say, raw, and what TRIREME_HIDE takes away.
struct CpuId {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint64_t xcr0 = 0;          // 0 where the system has not enabled XSAVE
  std::uint32_t leaf7_1_eax = 0;   // of leaf 7's sub-leaf 1
  std::optional<x86::Isa> hidden;  // and all that have more
};

// An error where TRIREME_HIDE is none of its values.
Result<CpuId> ask_cpuid();

// The same, for those who have no use for the error: nothing is hidden then.
CpuId read_cpuid();

// The names of what kernels use and the processor has: "FMA F16C AVX AVX2 BMI2".
std::string features_of(const CpuId& cpuid);

// Empty if kernels of this instruction set run; else why they do not.
std::string why_not(x86::Isa isa, const CpuId& cpuid);

}  // namespace trireme::cpu
