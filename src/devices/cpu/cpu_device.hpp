// Programs as x86 machine code, on as many threads as asked for.
#pragma once
#include "devices/device.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::cpu {

Result<std::unique_ptr<trireme::Executable>> compile(const Program& program, const Facts& facts, x86::Isa isa);

std::vector<DeviceEntry> devices();  // the widest instructions first

}  // namespace trireme::cpu
