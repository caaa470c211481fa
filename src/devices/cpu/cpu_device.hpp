// Programs as machine code of the host's processor, on as many threads as asked for.
#pragma once
#include <span>

#include "devices/cpu/instruction_set.hpp"
#include "devices/device.hpp"

namespace trireme::cpu {

Result<std::unique_ptr<trireme::Executable>> compile(const Program& program, const Facts& facts,
                                                     const InstructionSet& set);

// Entries of the table of devices. `sets`, which stay where they are: those that the processor may have, the widest
// first. `features`: those of this processor that its kernels use, by name.
std::vector<DeviceEntry> devices_of(std::span<const InstructionSet> sets, std::string_view needs,
                                    std::string (*features)());

}  // namespace trireme::cpu
