// Kernel to x86-64 machine code by asmjit: position-independent bytes, no device touched.
#pragma once
#include <cstdint>
#include <string_view>

#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "targets/machine_code.hpp"

namespace trireme::x86 {

extern const Target target;  // in the table of targets

// Each has what the ones before it have. Bf16: AVX512_BF16, whose conversion is right but for subnormal values.
enum class Isa : std::uint8_t { Avx2, Avx512, Avx512Bf16 };
constexpr std::string_view arch_name(Isa isa) {
  return isa == Isa::Avx2 ? "avx2" : isa == Isa::Avx512 ? "avx512" : "avx512_bf16";
}
constexpr bool is_avx512(Isa isa) { return isa >= Isa::Avx512; }

// f32 or f64 values a register holds.
constexpr int lanes(Isa isa, Type compute) { return (is_avx512(isa) ? 64 : 32) / static_cast<int>(bytes(compute)); }

trireme::Machine machine_of(Isa isa);

// A simd kernel whose launch.lanes is lanes(isa, kernel.compute).
Result<MachineCode> emit(const Kernel& kernel, Isa isa, bool with_listing = false);

}  // namespace trireme::x86
