#include "devices/cpu/x86/isa.hpp"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "support/environment.hpp"

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

constexpr std::string_view names[] = {"AVX2", "AVX-512", "AVX512_BF16"};

constexpr int osxsave_bit = 27;            // of leaf1_ecx
constexpr std::uint64_t ymm_state = 0x6;   // XCR0: xmm and ymm
constexpr std::uint64_t zmm_state = 0xE6;  // and k, the upper halves of zmm0–15, zmm16–31

}  // namespace

// Each question takes a virtual machine microseconds.
static CpuId ask_processor() {
  CpuId found;
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) found.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) found.leaf7_ebx = ebx;
  if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) found.leaf7_1_eax = eax;
  if (found.leaf1_ecx >> osxsave_bit & 1) {
    __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    found.xcr0 = static_cast<std::uint64_t>(edx) << 32 | eax;
  }
  return found;
}

static const CpuId& processor() {
  static const CpuId asked = ask_processor();
  return asked;
}

Result<CpuId> ask_cpuid() {
  CpuId found = processor();
  TRIREME_TRY(hidden, environment::hidden());
  for (x86::Isa isa : {x86::Isa::Avx512Bf16, x86::Isa::Avx512, x86::Isa::Avx2})
    if (std::ranges::count(hidden, x86::arch_name(isa))) found.hidden = isa;
  return found;
}

CpuId read_cpuid() {
  Result<CpuId> found = ask_cpuid();
  return found ? *found : processor();
}

std::string features_of(const CpuId& cpuid) {
  std::string names;
  for (const Feature& each : features)
    if (!(cpuid.hidden && each.needed_by >= *cpuid.hidden) && cpuid.*each.leaf >> each.bit & 1)
      names += (names.empty() ? "" : " ") + std::string(each.name);
  return names;
}

std::string why_not(x86::Isa isa, const CpuId& cpuid) {
  if (cpuid.hidden && isa >= *cpuid.hidden)
    return "TRIREME_HIDE takes away " + std::string(names[static_cast<std::size_t>(*cpuid.hidden)]);
  for (const Feature& each : features)
    if (each.needed_by <= isa && !(cpuid.*each.leaf >> each.bit & 1))
      return "the processor has no " + std::string(each.name);
  const std::uint64_t state = is_avx512(isa) ? zmm_state : ymm_state;
  if ((cpuid.xcr0 & state) != state)
    return std::string("the operating system does not save ") + (is_avx512(isa) ? "AVX-512" : "AVX") +
           " registers (XCR0)";
  return "";
}

}  // namespace trireme::cpu
