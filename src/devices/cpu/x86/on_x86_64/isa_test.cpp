// What the processor and the system allow: detection from raw values.
#include "devices/cpu/x86/isa.hpp"

#include <gtest/gtest.h>

#include "support/environment_for_test.hpp"

namespace trireme::cpu {
namespace {

using x86::Isa;

constexpr std::uint32_t avx2_leaf1 = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;  // FMA OSXSAVE AVX F16C
constexpr std::uint32_t avx2_leaf7 = 1u << 5 | 1u << 8;                          // AVX2 BMI2
constexpr std::uint32_t avx512_leaf7 = avx2_leaf7 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;

TEST(Isa, fault_27_EachMissingFeatureIsNamed) {
  const CpuId all = {avx2_leaf1, avx512_leaf7, 0xE7};
  EXPECT_EQ(why_not(Isa::Avx2, all), "");
  EXPECT_EQ(why_not(Isa::Avx512, all), "");
  EXPECT_EQ(why_not(Isa::Avx2, {}), "the processor has no FMA");
  EXPECT_EQ(why_not(Isa::Avx2, {avx2_leaf1, 1u << 8, 7}), "the processor has no AVX2");
  EXPECT_EQ(why_not(Isa::Avx2, {avx2_leaf1, 1u << 5, 7}), "the processor has no BMI2");
  EXPECT_EQ(why_not(Isa::Avx2, {avx2_leaf1 & ~(1u << 29), avx2_leaf7, 7}), "the processor has no F16C");
  EXPECT_EQ(why_not(Isa::Avx512, {avx2_leaf1, avx2_leaf7, 7}), "the processor has no AVX512F");
  EXPECT_EQ(why_not(Isa::Avx512Bf16, {avx2_leaf1, avx512_leaf7, 0xE7}), "the processor has no AVX512_BF16");
  EXPECT_EQ(why_not(Isa::Avx512Bf16, {avx2_leaf1, avx512_leaf7, 0xE7, 1u << 5}), "");
  EXPECT_EQ(why_not(Isa::Avx512, {avx2_leaf1, avx512_leaf7 & ~(1u << 31), 0xE7}), "the processor has no AVX512VL");
}

TEST(Isa, fault_27_RegistersTheSystemDoesNotSave) {
  EXPECT_EQ(why_not(Isa::Avx2, {avx2_leaf1, avx512_leaf7, 0x7}), "");
  EXPECT_EQ(why_not(Isa::Avx512, {avx2_leaf1, avx512_leaf7, 0x7}),
            "the operating system does not save AVX-512 registers (XCR0)");
  EXPECT_EQ(why_not(Isa::Avx512, {avx2_leaf1, avx512_leaf7, 0x67}),  // zmm16–31 missing
            "the operating system does not save AVX-512 registers (XCR0)");
  EXPECT_EQ(why_not(Isa::Avx2, {avx2_leaf1, avx512_leaf7, 0x3}),
            "the operating system does not save AVX registers (XCR0)");
}

TEST(Isa, fault_31_HiddenSetsAreNotThere) {
  auto cpuid = [](const char* hidden) {
    Environment set("TRIREME_HIDE", hidden);
    return read_cpuid();
  };
  EXPECT_EQ(why_not(Isa::Avx512, cpuid("avx512")), "TRIREME_HIDE takes away AVX-512");
  EXPECT_EQ(why_not(Isa::Avx512Bf16, cpuid("avx512")), "TRIREME_HIDE takes away AVX-512");
  EXPECT_EQ(why_not(Isa::Avx512Bf16, cpuid("avx512_bf16")), "TRIREME_HIDE takes away AVX512_BF16");
  for (Isa isa : {Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16})
    EXPECT_EQ(why_not(isa, cpuid("avx2")), "TRIREME_HIDE takes away AVX2");
  EXPECT_EQ(why_not(Isa::Avx2, cpuid("avx512")), why_not(Isa::Avx2, cpuid("")));
  EXPECT_EQ(features_of(cpuid("avx2")), "");
  const CpuId all = {avx2_leaf1, avx512_leaf7, 0xE7, 1u << 5};
  EXPECT_EQ(features_of(all), "FMA F16C AVX AVX2 BMI2 AVX512F AVX512DQ AVX512BW AVX512VL AVX512_BF16");
  const CpuId fewer = {avx2_leaf1, avx512_leaf7, 0xE7, 1u << 5, Isa::Avx512};
  EXPECT_EQ(features_of(fewer), "FMA F16C AVX AVX2 BMI2");
  Environment wrong("TRIREME_HIDE", "avx512;");
  EXPECT_EQ(ask_cpuid().error().code, trireme::Code::InvalidArgument);
}

TEST(Isa, ThisMachineAgreesWithTheCompiler) {
  Environment nothing("TRIREME_HIDE", std::nullopt);
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  EXPECT_EQ(why_not(Isa::Avx2, read_cpuid()).empty(), avx2);
  EXPECT_EQ(why_not(Isa::Avx512, read_cpuid()).empty(), avx512);
}

}  // namespace
}  // namespace trireme::cpu
