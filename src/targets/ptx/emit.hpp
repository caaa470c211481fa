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
// With names: comments say which registers hold the program's values, for readers; the rest is the same.
Result<std::string> emit(const Kernels& kernels, std::string_view arch = "sm_80", bool with_names = false);
Result<std::string> emit(std::span<const trireme::Kernel> kernels, std::string_view arch = "sm_80",
                         bool with_names = false);

}  // namespace trireme::ptx
