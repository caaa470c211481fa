// Programs as PTX on an NVIDIA GPU, through the driver alone.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>

#include "devices/arguments.hpp"
#include "devices/cuda/driver.hpp"
#include "devices/device.hpp"

namespace trireme::cuda {

// A program's kernels under one config, on a device.
class LoadedKernels {
 public:
  static Result<LoadedKernels> create(const Device& device, const Program& program, const Config& config);

  const Config& config() const { return config_; }
  const Kernels& kernels() const { return kernels_; }
  const FunctionFacts& facts() const { return facts_; }
  const std::string& hash() const { return hash_; }

  // Pointers of `problem` and `partials` (blocks.workspace_bytes of it) are the device's. Rows first .. last are whole
  // row blocks, as many as one takes; beyond what a grid holds they go in several launches. No allocation, no waiting.
  Status launch_rows(const Program& program, const Problem2d& problem, const Blocks& blocks, void* partials,
                     StreamHandle stream, std::int64_t first, std::int64_t last) const;
  Status launch_columns(const Program& program, const Problem2d& problem, const Blocks& blocks, void* partials,
                        StreamHandle stream) const;

 private:
  explicit LoadedKernels(const Device& device) : device_(&device) {}

  const Device* device_;
  Config config_;
  Kernels kernels_;
  std::string hash_;
  Module module_;
  Function rows_ = nullptr;
  std::vector<Function> columns_;
  FunctionFacts facts_;
};

// A program loaded onto a device. `run_in` works on device memory; `run` brings host memory there and back.
class CudaExecutable : public DirectExecutable {
 public:
  static Result<std::unique_ptr<CudaExecutable>> create(const Device& device, const Program& program,
                                                        const Config& config);

  MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override;
  Status run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const override;
  bool has_streams() const override { return true; }
  Status prepare() const override;
  Status check_memory(const void* memory) const override;
  Result<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) const override;

  Status run(const Problem2d& problem, const RunOptions& options) override;
  std::string describe() const override;
  std::string kernel_hash() const override { return vectors_.hash(); }
  const LoadedKernels& loaded() const { return vectors_; }
  const Program& program() const { return program_; }
  const Device& device() const { return device_; }

 private:
  CudaExecutable(const Device& device, const Program& program, LoadedKernels vectors)
      : device_(device), program_(program), vectors_(std::move(vectors)) {}
  Result<const LoadedKernels*> kernels_for(const Problem2d& problem, StreamHandle stream) const;
  const Result<LoadedKernels>& singles() const;

  const Device& device_;
  Program program_;
  LoadedKernels vectors_;
  // For arrays that do not begin where vectors_ may read them: elements go one by one. Made when first needed.
  mutable std::once_flag singles_made_;
  mutable std::atomic<bool> prepared_ = false;  // singles_ is there
  mutable std::optional<Result<LoadedKernels>> singles_;
};

// Rows that one launch takes: as many whole row blocks as the grid's x dimension holds.
std::int64_t rows_of_a_launch(const Blocks& blocks, const trireme::Launch& form);

// Why GPU number `ordinal` cannot be used; empty if it can.
std::string missing(int ordinal);
Machine machine_of(const Device& device);
Result<std::unique_ptr<Executable>> compile(const Program& program, const Facts& facts, int ordinal);

// A problem's arrays in device memory: copies of the host's.
struct DeviceArrays {
  std::vector<cuda::Memory> memory;
  std::vector<Array> operands, results;
  Problem2d problem;  // points into the vectors above
};
Result<std::unique_ptr<DeviceArrays>> to_device(const Device& device, const Program& program, const Problem2d& problem);

}  // namespace trireme::cuda
