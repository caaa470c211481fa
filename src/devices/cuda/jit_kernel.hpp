// Kernels of the user's own on a given device: what trireme/jit.hpp does on the one that its options name.
#pragma once
#include "devices/cuda/jit_compile.hpp"
#include "devices/cuda/modules.hpp"

namespace trireme::cuda {

Result<jit::Kernel> kernel_from_source(const Device& device, std::string_view source, std::string_view name,
                                       const jit::Options& options);
Result<jit::Kernel> kernel_from_ptx(const Device& device, const std::string& text, std::string_view name);

}  // namespace trireme::cuda
