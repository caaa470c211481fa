#include "devices/lanes/lanes_device.hpp"

#include <algorithm>

#include "devices/arguments.hpp"
#include "schedule/lower.hpp"
#include "targets/lanes/interpret.hpp"

namespace trireme::lanes {
namespace {

class LanesExecutable : public Executable {
 public:
  LanesExecutable(Program program, Config config, Kernels kernels)
      : program_(std::move(program)), config_(config), kernels_(std::move(kernels)) {}

  Status run(const Problem2d& problem, const RunOptions& options) override {
    TRIREME_CHECK(check_layout(program_, problem));
    Blocks blocks = cut_rows(kernels_, problem.rows, problem.columns);
    std::vector<std::byte> workspace(blocks.workspace_bytes + 64), scratch(scratch_bytes(kernels_, problem.columns));
    auto address = [](auto& bytes) { return reinterpret_cast<std::uint64_t>(bytes.data()); };
    std::vector<std::uint64_t> args =
        fill_slots(kernels_, program_, problem, blocks, {.partials = address(workspace), .scratch = address(scratch)});
    std::int64_t step = rows_of_a_call(blocks, problem.rows, options.chunk_rows);
    for (std::int64_t first = 0; first < problem.rows; first += step) {
      std::int64_t last = std::min(first + step, problem.rows);
      std::int64_t teams = (last - first + blocks.row_block - 1) / blocks.row_block;
      std::int64_t grid = (teams + kernels_.rows.launch.teams - 1) / kernels_.rows.launch.teams;
      TRIREME_CHECK(interpret(kernels_.rows, args, first, last, problem.rows, grid));
    }
    for (const Kernel& kernel : kernels_.columns) {
      std::int64_t covered = kernel.launch.columns_covered;
      std::int64_t grid = (problem.columns + covered - 1) / covered;
      TRIREME_CHECK(interpret(kernel, args, 0, problem.columns, problem.rows, grid));
    }
    return Done{};
  }
  std::string describe() const override { return "interpreted, " + print(config_); }

 private:
  Program program_;
  Config config_;
  Kernels kernels_;
};

}  // namespace

Result<std::unique_ptr<Executable>> compile_with(const Program& program, const Config& config) {
  TRIREME_TRY(kernels, lower(program, config));
  return std::unique_ptr<Executable>(std::make_unique<LanesExecutable>(program, config, std::move(kernels)));
}

Result<std::unique_ptr<Executable>> compile(const Program& program, const Facts& facts) {
  return compile_with(program, choose_config(program, {.simd = false, .shared_bytes = 232448}, facts));
}

}  // namespace trireme::lanes
