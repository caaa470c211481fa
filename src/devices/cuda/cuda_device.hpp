// Programs as PTX on an NVIDIA GPU, through the driver alone.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>

#include "devices/cuda/loaded_kernels.hpp"
#include "devices/device.hpp"

namespace trireme::cuda {

// A program loaded onto a device. `run_in` works on device memory; `run` brings host memory there and back.
class CudaExecutable : public DirectExecutable {
 public:
  // Under one config. PTX for `arch`, or the device's.
  static Result<std::unique_ptr<CudaExecutable>> create(const Device& device, const Program& program,
                                                        const Config& config, std::string_view arch = {});
  // Under the config that is chosen for it.
  static Result<std::unique_ptr<CudaExecutable>> create(const Device& device, const Program& program,
                                                        const Facts& facts);

  MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override;
  Status run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const override;
  bool has_streams() const override { return true; }
  Status prepare() const override;
  Status check_memory(const void* memory) const override;
  Result<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) const override;

  Status run(const Problem2d& problem, const RunOptions& options) override;
  Result<Placed> place(const Problem2d& problem) const override;
  Result<Timing> time(const Placed& placed, const TimeOptions& options) override;
  std::string describe() const override;
  std::string kernel_hash() const override;
  Identity identity() const override;
  const LoadedKernels& loaded() const { return vectors_; }

 private:
  CudaExecutable(const Device& device, const Program& program, std::string_view arch, LoadedKernels vectors)
      : device_(device), arch_(arch), program_(program), vectors_(std::move(vectors)) {}
  Result<const LoadedKernels*> kernels_for(const Problem2d& problem, StreamHandle stream) const;
  const Result<LoadedKernels>& singles() const;

  const Device& device_;
  std::string arch_;
  Program program_;
  LoadedKernels vectors_;
  // For arrays that do not begin where vectors_ may read them: elements go one by one. Made when first needed.
  mutable std::once_flag singles_made_;
  mutable std::atomic<bool> prepared_ = false;  // singles_ is there
  mutable std::optional<Result<LoadedKernels>> singles_;
};

// Why GPU number `ordinal` cannot be used; empty if it can.
std::string missing(int ordinal);
Machine machine_of(const Device& device);
Result<std::unique_ptr<Executable>> compile(const Program& program, const Facts& facts, int ordinal);

std::vector<DeviceEntry> devices();  // the first GPU; others by find_device()

// A problem's arrays in device memory: copies of the host's.
struct DeviceArrays {
  std::vector<cuda::Memory> memory;
  std::vector<Array> arrays;
  Problem2d problem;  // points into `arrays`
};
Result<std::unique_ptr<DeviceArrays>> to_device(const Device& device, const Program& program, const Problem2d& problem);

}  // namespace trireme::cuda
