// Programs as PTX on an NVIDIA GPU, through the driver alone.
#pragma once
#include "devices/arguments.hpp"
#include "devices/cuda/driver.hpp"
#include "devices/device.hpp"

namespace trireme::cuda {

// A program loaded onto a device. `launch` works on device memory; `run` brings host memory there and back.
class CudaExecutable : public Executable {
 public:
  static Result<std::unique_ptr<CudaExecutable>> create(const Device& device, const Program& program,
                                                        const Config& config);

  // Pointers of `problem` and `partials` (blocks.workspace_bytes of it) are the device's. No allocation, no waiting.
  Status launch(const Problem2d& problem, const Blocks& blocks, void* partials, StreamHandle stream, std::int64_t first,
                std::int64_t last) const;
  Status launch_columns(const Problem2d& problem, const Blocks& blocks, void* partials, StreamHandle stream) const;

  Status run(const Problem2d& problem, const RunOptions& options) override;
  std::string describe() const override;
  const Kernels& kernels() const { return kernels_; }
  const Program& program() const { return program_; }
  const Device& device() const { return device_; }

 private:
  CudaExecutable(const Device& device, Program program, Config config, Kernels kernels)
      : device_(device), program_(std::move(program)), config_(config), kernels_(std::move(kernels)) {}

  const Device& device_;
  Program program_;
  Config config_;
  Kernels kernels_;
  Module module_;
  Function rows_ = nullptr;
  std::vector<Function> columns_;
  FunctionFacts facts_;
};

// Why there is no GPU to use; empty if there is one.
std::string missing();
Machine machine_of(const Device& device);
Result<std::unique_ptr<Executable>> compile(const Program& program, const Facts& facts);

// A problem's arrays in device memory: copies of the host's, or fresh where `problem` says so.
struct DeviceArrays {
  std::vector<cuda::Memory> memory;
  std::vector<Array> operands, results;
  Problem2d problem;  // points into the vectors above
};
Result<std::unique_ptr<DeviceArrays>> to_device(const Device& device, const Program& program, const Problem2d& problem);

}  // namespace trireme::cuda
