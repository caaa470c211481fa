// The AArch64 instruction sets, on an AArch64 processor.
#include "devices/cpu/aarch64/devices.hpp"

#include <sys/auxv.h>

#include <algorithm>

#include "devices/cpu/aarch64/moves.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "support/environment.hpp"
#include "targets/aarch64/emit.hpp"

namespace trireme::cpu {
namespace {

using aarch64::Isa;

constexpr unsigned long hwcap2_bf16 = 1ul << 14;

bool has_bf16() { return getauxval(AT_HWCAP2) & hwcap2_bf16; }

template <Isa isa>
std::string missing() {
  Result<std::vector<std::string>> hidden = environment::hidden();
  if (!hidden) return hidden.error().message;
  for (Isa each : {Isa::Neon, Isa::NeonBf16})
    if (each <= isa && std::ranges::count(*hidden, aarch64::arch_name(each)))
      return each == Isa::Neon ? "TRIREME_HIDE takes away NEON" : "TRIREME_HIDE takes away FEAT_BF16";
  return isa == Isa::NeonBf16 && !has_bf16() ? "the processor has no FEAT_BF16" : "";
}

template <Isa isa>
InstructionSet set(std::string_view title, const InstructionSet* base = nullptr) {
  return {.title = title,
          .processor = "aarch64",
          .target = &aarch64::target,
          .arch = aarch64::arch_name(isa),
          .moves = &neon_moves(),
          .missing = missing<isa>,
          .base = base};
}

}  // namespace

std::span<const InstructionSet> aarch64_instruction_sets() {
  static const InstructionSet sets[] = {set<Isa::Neon>("NEON"), set<Isa::NeonBf16>("NEON BF16", &sets[0])};
  return sets;
}

std::vector<DeviceEntry> aarch64_devices() {
  return devices_of(aarch64_instruction_sets(), "needs an AArch64 processor; the reference serves without", [] {
    if (!missing<Isa::Neon>().empty()) return std::string();
    return std::string(missing<Isa::NeonBf16>().empty() ? "NEON BF16" : "NEON");
  });
}

}  // namespace trireme::cpu
