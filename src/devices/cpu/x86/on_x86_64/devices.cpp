// The x86 instruction sets, on an x86 processor.
#include "devices/cpu/x86/devices.hpp"

#include "devices/cpu/cpu_device.hpp"
#include "devices/cpu/x86/isa.hpp"
#include "devices/cpu/x86/moves.hpp"

namespace trireme::cpu {
namespace {

template <typename T>
MoveWidths<T> widths(bool avx512) {
  const Moves<T>&middle = avx2_moves<T>(false), &small = avx2_moves<T>(true);
  if constexpr (sizeof(T) > 1)
    if (avx512) return {&avx512_moves<T>(), &middle, &small};
  return {&middle, &middle, &small};
}
const MoveTable& moves(bool avx512) {
  static const auto table = [](bool wide) {
    return MoveTable{widths<std::uint8_t>(wide), widths<std::uint16_t>(wide), widths<std::uint32_t>(wide),
                     widths<std::uint64_t>(wide)};
  };
  static const MoveTable narrow = table(false), wide = table(true);
  return avx512 ? wide : narrow;
}

template <x86::Isa isa>
std::string missing() {
  Result<CpuId> cpuid = ask_cpuid();
  return cpuid ? why_not(isa, *cpuid) : cpuid.error().message;
}

template <x86::Isa isa>
InstructionSet set(std::string_view title, const InstructionSet* base = nullptr) {
  return {.title = title,
          .processor = "x86-64",
          .target = &x86::target,
          .arch = x86::arch_name(isa),
          .moves = &moves(is_avx512(isa)),
          .missing = missing<isa>,
          .base = base};
}

}  // namespace

std::span<const InstructionSet> x86_instruction_sets() {
  static const InstructionSet sets[] = {set<x86::Isa::Avx512>("AVX-512"), set<x86::Isa::Avx2>("AVX2"),
                                        set<x86::Isa::Avx512Bf16>("AVX-512 BF16", &sets[0])};
  return sets;
}

std::vector<DeviceEntry> x86_devices() {
  return devices_of(x86_instruction_sets(),
                    "needs an x86 processor with AVX2, FMA and F16C (2013 and later); the reference serves "
                    "without",
                    [] { return features_of(read_cpuid()); });
}

}  // namespace trireme::cpu
