// The x86 instruction sets, on another processor: they are known, and missing.
#include "devices/cpu/x86/devices.hpp"

#include "devices/cpu/cpu_device.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::cpu {
namespace {

InstructionSet set(std::string_view title, x86::Isa isa, std::string (*missing)()) {
  return {.title = title,
          .processor = "x86-64",
          .target = &x86::target,
          .arch = x86::arch_name(isa),
          .moves = nullptr,
          .missing = missing};
}

}  // namespace

std::span<const InstructionSet> x86_instruction_sets() {
  static const InstructionSet sets[] = {
      set("AVX-512", x86::Isa::Avx512, [] { return std::string("the processor has no AVX-512"); }),
      set("AVX2", x86::Isa::Avx2, [] { return std::string("the processor has no AVX2"); })};
  return sets;
}

std::vector<DeviceEntry> x86_devices() {
  return devices_of(x86_instruction_sets(), "needs an x86 processor with AVX2, FMA and F16C (2013 and later)", nullptr);
}

}  // namespace trireme::cpu
