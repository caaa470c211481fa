// Calls a kernel module by the names of its arrays: what a host does with docs/kernel-abi.md in hand.
#pragma once
#include <map>
#include <optional>

#include "kernel_abi/module.hpp"
#include "trireme/wasm_host.hpp"

namespace trireme {

struct KernelAbiCall {
  bool backward = false;
  std::int64_t rows = 0, columns = 0;
  float value = 0;  // eps, beta; of those that have none it is ignored
  std::map<std::string, std::span<const float>, std::less<>> inputs;
  std::map<std::string, std::span<float>, std::less<>> outputs;
};

const KernelAbi* find_kernel_abi(std::string_view name);  // as kernel_info says it; null if unknown
std::int64_t count_of(const AbiArray& array, std::int64_t rows, std::int64_t columns);

// The arrays an entry has, those it must have first.
struct KernelAbiArray {
  AbiArray array;
  bool optional;
};
std::vector<KernelAbiArray> arrays_of(const AbiEntry& entry);

Status call_kernel(WasmKernel& kernel, const KernelAbi& abi, const KernelAbiCall& call);

}  // namespace trireme
