// A program's kernels as machine code, shared by all plans they serve: rows, strides, constants and, beyond short rows,
// the number of columns are arguments.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "devices/cpu/code_memory.hpp"
#include "devices/cpu/instruction_set.hpp"
#include "ir/program.hpp"
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"

namespace trireme::cpu {

struct Compiled {
  Kernels kernels;
  std::string hash;  // of the code
  CodeMemory code;   // of kernels.rows, then of kernels.columns
};

// Made once while somebody has it.
Result<std::shared_ptr<const Compiled>> compiled(const Program& program, const Config& config,
                                                 const InstructionSet& set);

}  // namespace trireme::cpu
