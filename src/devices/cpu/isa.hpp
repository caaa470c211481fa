// Which instruction sets this machine runs: the processor must have them and the system must save their registers.
#pragma once
#include <cstdint>
#include <string>

#include "targets/x86/emit.hpp"

namespace trireme::cpu {

// What CPUID and XGETBV say, raw.
struct CpuId {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint64_t xcr0 = 0;         // 0 where the system has not enabled XSAVE
  std::uint32_t leaf7_1_eax = 0;  // of leaf 7's sub-leaf 1
};

// TRIREME_CPUID_MASK=LEAF1_ECX,LEAF7_EBX,XCR0,LEAF7_1_EAX (hexadecimal; the last may be missing) hides what it leaves
// out: a test's older processor.
CpuId read_cpuid();

// Empty if kernels of this instruction set run; else why they do not.
std::string why_not(x86::Isa isa, const CpuId& cpuid);

// `isa`, or more of the same register width where this machine has it.
x86::Isa best_of(x86::Isa isa);

}  // namespace trireme::cpu
