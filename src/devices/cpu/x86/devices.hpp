#pragma once
#include <span>

#include "devices/cpu/instruction_set.hpp"
#include "devices/device.hpp"

namespace trireme::cpu {

// AVX-512, AVX2 and AVX-512 with AVX512_BF16.
std::span<const InstructionSet> x86_instruction_sets();

std::vector<DeviceEntry> x86_devices();  // in the table of devices

}  // namespace trireme::cpu
