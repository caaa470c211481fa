#pragma once
#include <span>

#include "devices/cpu/instruction_set.hpp"
#include "devices/device.hpp"

namespace trireme::cpu {

// NEON, which every AArch64 processor has, and NEON with FEAT_BF16.
std::span<const InstructionSet> aarch64_instruction_sets();

std::vector<DeviceEntry> aarch64_devices();  // in the table of devices

}  // namespace trireme::cpu
