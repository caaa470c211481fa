#include "devices/cpu/isa.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace trireme::cpu {

namespace {

struct Feature {
  std::string_view name;
  std::uint32_t CpuId::*leaf;
  int bit;
  x86::Isa needed_by;  // and by all wider ones
};

constexpr std::array<Feature, 10> features = {{
    {"FMA", &CpuId::leaf1_ecx, 12, x86::Isa::Avx2},
    {"F16C", &CpuId::leaf1_ecx, 29, x86::Isa::Avx2},
    {"AVX", &CpuId::leaf1_ecx, 28, x86::Isa::Avx2},
    {"AVX2", &CpuId::leaf7_ebx, 5, x86::Isa::Avx2},
    {"BMI2", &CpuId::leaf7_ebx, 8, x86::Isa::Avx2},
    {"AVX512F", &CpuId::leaf7_ebx, 16, x86::Isa::Avx512},
    {"AVX512DQ", &CpuId::leaf7_ebx, 17, x86::Isa::Avx512},
    {"AVX512BW", &CpuId::leaf7_ebx, 30, x86::Isa::Avx512},
    {"AVX512VL", &CpuId::leaf7_ebx, 31, x86::Isa::Avx512},
    {"AVX512_BF16", &CpuId::leaf7_1_eax, 5, x86::Isa::Avx512Bf16},
}};

constexpr int osxsave_bit = 27;            // of leaf1_ecx
constexpr std::uint64_t ymm_state = 0x6;   // XCR0: xmm and ymm
constexpr std::uint64_t zmm_state = 0xE6;  // and k, the upper halves of zmm0–15, zmm16–31

}  // namespace

// Each question takes a virtual machine microseconds.
static CpuId ask_processor() {
  CpuId found;
#if defined(__x86_64__)
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) found.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) found.leaf7_ebx = ebx;
  if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) found.leaf7_1_eax = eax;
  if (found.leaf1_ecx >> osxsave_bit & 1) {
    __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    found.xcr0 = static_cast<std::uint64_t>(edx) << 32 | eax;
  }
#endif
  return found;
}

CpuId read_cpuid() {
  static const CpuId asked = ask_processor();
  CpuId found = asked;
  if (const char* mask = std::getenv("TRIREME_CPUID_MASK")) {
    CpuId kept;
    unsigned long long xcr0 = 0;
    if (std::sscanf(mask, "%x,%x,%llx,%x", &kept.leaf1_ecx, &kept.leaf7_ebx, &xcr0, &kept.leaf7_1_eax) >= 3) {
      found.leaf1_ecx &= kept.leaf1_ecx;
      found.leaf7_ebx &= kept.leaf7_ebx;
      found.leaf7_1_eax &= kept.leaf7_1_eax;
      found.xcr0 &= xcr0;
    }
  }
  return found;
}

std::string why_not(x86::Isa isa, const CpuId& cpuid) {
  for (const Feature& each : features)
    if (each.needed_by <= isa && !(cpuid.*each.leaf >> each.bit & 1))
      return "the processor has no " + std::string(each.name);
  const std::uint64_t state = is_avx512(isa) ? zmm_state : ymm_state;
  if ((cpuid.xcr0 & state) != state)
    return std::string("the operating system does not save ") + (is_avx512(isa) ? "AVX-512" : "AVX") +
           " registers (XCR0)";
  return "";
}

x86::Isa best_of(x86::Isa isa) {
  const bool more = isa == x86::Isa::Avx512 && why_not(x86::Isa::Avx512Bf16, read_cpuid()).empty();
  return more ? x86::Isa::Avx512Bf16 : isa;
}

}  // namespace trireme::cpu
