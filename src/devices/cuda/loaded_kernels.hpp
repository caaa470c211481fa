// A program's own kernels on a device, and how they are launched.
#pragma once
#include "devices/arguments.hpp"
#include "devices/cuda/driver.hpp"

namespace trireme::cuda {

// PTX of the oldest architecture that has what kernels use runs on all later ones.
std::string_view arch_for(const Device& device);

// Rows that one launch takes: as many whole row blocks as the grid's x dimension holds.
std::int64_t rows_of_a_launch(const Blocks& blocks, const trireme::Launch& form);

// A program's kernels under one config, on a device.
class LoadedKernels {
 public:
  static Result<LoadedKernels> create(const Device& device, const Program& program, const Config& config,
                                      std::string_view arch);

  const Config& config() const { return config_; }
  const Kernels& kernels() const { return kernels_; }
  const FunctionFacts& facts() const { return facts_; }
  const std::string& hash() const { return hash_; }

  // Pointers of `problem` and `partials` (blocks.workspace_bytes of it) are the device's. Rows first .. last are whole
  // row blocks, as many as one takes; beyond what a grid holds they go in several launches. No allocation, no waiting.
  Status launch_rows(const Program& program, const Problem2d& problem, const Blocks& blocks, void* partials,
                     StreamHandle stream, std::int64_t first, std::int64_t last) const;
  Status launch_before(std::size_t which, const Program& program, const Problem2d& problem, void* partials,
                       StreamHandle stream) const;  // all units of kernels().before
  Status launch_columns(const Program& program, const Problem2d& problem, const Blocks& blocks, void* partials,
                        StreamHandle stream) const;

 private:
  Status launch_blocks(Function function, const Kernel& kernel, const Program& program, const Problem2d& problem,
                       const Blocks& blocks, void* partials, StreamHandle stream, std::int64_t first,
                       std::int64_t last) const;
  explicit LoadedKernels(const Device& device) : device_(&device) {}

  const Device* device_;
  Config config_;
  Kernels kernels_;
  std::string hash_;
  Module module_;
  Function rows_ = nullptr;
  std::vector<Function> before_, columns_;
  FunctionFacts facts_;
};

}  // namespace trireme::cuda
