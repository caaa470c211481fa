// What the CPU device takes from an instruction set: who emits its code, whether it runs here, and its registers for
// copies. Each processor has a folder beside this file: what stands in on_PROCESSOR is compiled there alone, what
// stands in off_PROCESSOR everywhere else.
#pragma once
#include <string>
#include <string_view>

#include "devices/cpu/moves.hpp"
#include "targets/targets.hpp"

namespace trireme::cpu {

struct InstructionSet {
  std::string_view title;      // "AVX-512"
  std::string_view processor;  // "x86-64"
  const Target* target;
  std::string_view arch;     // of the target
  const MoveTable* moves;    // none where it does not run
  std::string (*missing)();  // empty, or why its code does not run here
  // What it is more of: taken in its place where it is there. Its registers are as wide.
  const InstructionSet* base = nullptr;
};

}  // namespace trireme::cpu
