// Kernels that work on numbered units (schedule/spread_sums.hpp), loaded onto a device.
#pragma once
#include "devices/cuda/driver.hpp"
#include "schedule/spread_sums.hpp"

namespace trireme::cuda {

class UnitKernels {
 public:
  UnitKernels() = default;
  static Result<UnitKernels> create(const Device& device, std::vector<Kernel> kernels, std::string_view arch);

  const std::string& hash() const { return hash_; }
  Status launch(const SumLaunch& what, StreamHandle stream) const;

 private:
  const Device* device_ = nullptr;
  std::vector<Kernel> kernels_;
  std::string hash_;
  Module module_;
  std::vector<Function> functions_;
};

}  // namespace trireme::cuda
