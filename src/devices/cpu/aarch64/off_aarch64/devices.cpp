// The AArch64 instruction set, on another processor: it is known, and missing.
#include "devices/cpu/aarch64/devices.hpp"

#include "devices/cpu/cpu_device.hpp"
#include "targets/aarch64/emit.hpp"

namespace trireme::cpu {

std::span<const InstructionSet> aarch64_instruction_sets() {
  static const InstructionSet sets[] = {{.title = "NEON",
                                         .processor = "aarch64",
                                         .target = &aarch64::target,
                                         .arch = aarch64::arch_name(aarch64::Isa::Neon),
                                         .moves = nullptr,
                                         .missing = [] { return std::string("the processor has no NEON"); }}};
  return sets;
}

std::vector<DeviceEntry> aarch64_devices() {
  return devices_of(aarch64_instruction_sets(), "needs an AArch64 processor", nullptr);
}

}  // namespace trireme::cpu
