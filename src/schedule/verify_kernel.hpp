// Checks that a lowered kernel is well formed: registers of the right bank and number, slots that exist, instructions
// that its kind of machine has. An error is a fault of whoever built the kernel; it names the instruction.
#pragma once
#include "schedule/kernel.hpp"
#include "trireme/result.hpp"

namespace trireme {

Status verify(const Kernel& kernel);

}  // namespace trireme
