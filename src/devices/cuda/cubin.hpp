// What a cubin says about a kernel. It is an ELF file; NVIDIA's sections are read as its assembler writes them for
// sm_80 to sm_120, and anything unexpected leaves a fact unknown.
#pragma once
#include <string>
#include <string_view>

#include "trireme/jit.hpp"

namespace trireme::cuda {

Result<jit::Facts> read_cubin(std::string_view cubin, const std::string& kernel);

}  // namespace trireme::cuda
