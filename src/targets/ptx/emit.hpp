// Kernels to PTX text.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "schedule/kernel.hpp"
#include "trireme/result.hpp"

namespace trireme {
struct Target;
}

namespace trireme::ptx {

extern const Target target;  // in the table of targets

// One module; its entries are named like the kernels and take the slots as a block of bytes, then first, last, total.
Result<std::string> emit(const Kernels& kernels, std::string_view arch = "sm_80");
Result<std::string> emit(std::span<const trireme::Kernel> kernels, std::string_view arch = "sm_80");

}  // namespace trireme::ptx
