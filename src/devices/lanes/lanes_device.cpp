#include "devices/lanes/lanes_device.hpp"

#include <algorithm>

#include "devices/arguments.hpp"
#include "layout/indexing.hpp"
#include "layout/overlap.hpp"
#include "schedule/lower.hpp"
#include "targets/lanes/interpret.hpp"

namespace trireme::lanes {
namespace {

// From the first to the last byte of an array; gaps between its rows count as its own.
Range range_of(const Array& array, std::int64_t rows, std::int64_t columns, bool writable) {
  ByteRange range = byte_range({array, rows, columns});
  return {static_cast<const std::byte*>(array.data) + range.low, static_cast<std::size_t>(range.high - range.low),
          writable};
}

Result<std::vector<Range>> ranges_of(const Program& program, const Problem2d& problem) {
  std::vector<Range> ranges;
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    const Program::Array what = program.array(k);
    if (!what.in_memory) continue;
    TRIREME_TRY(index, indexing(program, what.spread, problem.columns, problem.constants));
    ranges.push_back(range_of(problem.arrays[k], row_entries(index.row, problem.arrays[k], problem.rows),
                              index.column.extent(problem.columns), what.result));
  }
  return ranges;
}

class LanesExecutable : public Executable {
 public:
  LanesExecutable(Program program, Lowered lowered, std::int64_t row_block)
      : program_(std::move(program)),
        config_(std::move(lowered.config)),
        kernels_(std::move(lowered.kernels)),
        row_block_(row_block) {}

  Status run(const Problem2d& problem, const RunOptions& options) override {
    TRIREME_CHECK(check_layout(config_.layout, program_, problem));
    Blocks blocks = cut_rows(kernels_, problem.rows, problem.columns);
    const bool has_blocks = !kernels_.sums.empty() && kernels_.sums[0].by_blocks();  // the contract's
    if (row_block_ && !has_blocks) blocks.row_block = row_block_;
    std::vector<std::byte> workspace(blocks.workspace_bytes + 64), scratch(scratch_bytes(kernels_, problem.columns));
    auto address = [](auto& bytes) { return reinterpret_cast<std::uint64_t>(bytes.data()); };
    std::vector<std::uint64_t> args =
        fill_slots(kernels_, program_, problem, blocks, {.partials = address(workspace), .scratch = address(scratch)});
    TRIREME_TRY(ranges, ranges_of(program_, problem));
    ranges.push_back({workspace.data(), static_cast<std::size_t>(blocks.workspace_bytes), true});
    auto walk = [&](const Kernel& kernel, const Blocks& cut) -> Status {
      std::int64_t step = rows_of_a_call(cut, options.chunk_rows);
      for (std::int64_t first = 0; first < cut.units; first += step) {
        std::int64_t last = std::min(first + step, cut.units);
        std::int64_t teams = (last - first + cut.row_block - 1) / cut.row_block;
        const Launch& form = kernel.launch;
        std::int64_t grid = (teams + form.teams - 1) / form.teams * form.cluster;
        TRIREME_CHECK(interpret(kernel, args, first, last, problem.rows, grid, ranges));
      }
      return Done{};
    };
    for (const Kernel& kernel : kernels_.before)
      TRIREME_CHECK(walk(kernel, cut_rows(kernels_, kernel, problem.rows, problem.columns)));
    TRIREME_CHECK(walk(kernels_.rows, blocks));
    for (const Kernel& kernel : kernels_.columns) {
      std::int64_t covered = kernel.launch.columns_covered;
      std::int64_t entries = entries_of(kernels_, kernel, problem.rows, problem.columns);
      TRIREME_CHECK(interpret(kernel, args, 0, entries, problem.rows, (entries + covered - 1) / covered, ranges));
    }
    return Done{};
  }
  std::string describe() const override { return "interpreted, " + print(config_); }

 private:
  Program program_;
  Config config_;
  Kernels kernels_;
  std::int64_t row_block_;
};

}  // namespace

Result<std::unique_ptr<Executable>> compile_with(const Program& program, const Config& config, std::int64_t row_block) {
  TRIREME_TRY(kernels, lower(program, config));
  return std::unique_ptr<Executable>(
      std::make_unique<LanesExecutable>(program, Lowered{config, std::move(kernels)}, row_block));
}

std::vector<DeviceEntry> devices() {
  return {{.name = "lanes",
           .missing = [] { return std::string(); },
           .compile = [](const Program& program, const Facts& facts) -> Result<std::unique_ptr<Executable>> {
             Machine machine{.simd = false, .shared_bytes = 232448, .clusters = true};
             TRIREME_TRY(lowered, lower_for(program, machine, facts));
             return std::unique_ptr<Executable>(std::make_unique<LanesExecutable>(program, std::move(lowered), 0));
           },
           .most_elements = std::int64_t{1} << 21}};
}

}  // namespace trireme::lanes
