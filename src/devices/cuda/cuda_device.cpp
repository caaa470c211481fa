#include "devices/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "layout/indexing.hpp"
#include "schedule/lower.hpp"
#include "targets/ptx/emit.hpp"

namespace trireme::cuda {
namespace {

std::uint32_t blocks_for(std::int64_t work, std::int64_t each) {
  return static_cast<std::uint32_t>((work + each - 1) / each);
}

// Bytes from an array's first to its last entry.
std::int64_t extent_bytes(const Array& array, std::int64_t rows, std::int64_t columns) {
  if (rows == 0 || columns == 0) return 0;
  std::int64_t last = (rows - 1) * std::abs(array.row_stride) + (columns - 1) * std::abs(array.column_stride);
  return (last + 1) * static_cast<std::int64_t>(bytes(array.type));
}

}  // namespace

Machine machine_of(const Device& device) {
  return {.simd = false,
          .shared_bytes = device.facts().shared_bytes_per_block,
          .processors = device.facts().multiprocessors};
}

Result<std::unique_ptr<CudaExecutable>> CudaExecutable::create(const Device& device, const Program& program,
                                                               const Config& config) {
  TRIREME_TRY(kernels, lower(program, config));
  // PTX of the oldest architecture that has what the kernels use runs on all later ones.
  int arch = device.facts().capability >= 90 ? 90 : 80;
  TRIREME_TRY(text, ptx::emit(kernels, fmt::format("sm_{}", arch)));
  std::unique_ptr<CudaExecutable> made(new CudaExecutable(device, program, config, std::move(kernels)));
  TRIREME_TRY(module, device.load(text));
  made->module_ = std::move(module);
  auto entry = [&](const Kernel& kernel) -> Result<Function> {
    TRIREME_TRY(function, device.function(made->module_, kernel.name.c_str()));
    TRIREME_CHECK(device.allow_shared(function, static_cast<std::uint32_t>(kernel.scratch_bytes)));
    return function;
  };
  TRIREME_TRY(rows, entry(made->kernels_.rows));
  made->rows_ = rows;
  TRIREME_TRY(facts, device.function_facts(rows));
  made->facts_ = facts;
  for (const Kernel& kernel : made->kernels_.columns) {
    TRIREME_TRY(columns, entry(kernel));
    made->columns_.push_back(columns);
  }
  return made;
}

Status CudaExecutable::launch(const Problem2d& problem, const Blocks& blocks, void* partials, StreamHandle stream,
                              std::int64_t first, std::int64_t last) const {
  if (first >= last) return Done{};
  const trireme::Launch& form = kernels_.rows.launch;
  std::vector<std::uint64_t> args =
      fill_slots(kernels_, program_, problem, blocks, {.partials = reinterpret_cast<std::uint64_t>(partials)});
  std::int64_t total = problem.rows;
  void* params[] = {args.data(), &first, &last, &total};
  std::int64_t teams = (last - first + blocks.row_block - 1) / blocks.row_block;
  return device_.launch(rows_,
                        {.grid = {blocks_for(teams, form.teams)},
                         .block = {static_cast<std::uint32_t>(form.threads())},
                         .shared_bytes = static_cast<std::uint32_t>(kernels_.rows.scratch_bytes),
                         .stream = stream},
                        params);
}

Status CudaExecutable::launch_columns(const Problem2d& problem, const Blocks& blocks, void* partials,
                                      StreamHandle stream) const {
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const Kernel& kernel = kernels_.columns[k];
    std::vector<std::uint64_t> args =
        fill_slots(kernels_, program_, problem, blocks, {.partials = reinterpret_cast<std::uint64_t>(partials)});
    std::int64_t first = 0, last = problem.columns, total = problem.rows;
    void* params[] = {args.data(), &first, &last, &total};
    TRIREME_CHECK(device_.launch(columns_[k],
                                 {.grid = {blocks_for(last, kernel.launch.columns_covered)},
                                  .block = {static_cast<std::uint32_t>(kernel.launch.threads())},
                                  .shared_bytes = static_cast<std::uint32_t>(kernel.scratch_bytes),
                                  .stream = stream},
                                 params));
  }
  return Done{};
}

Result<std::unique_ptr<DeviceArrays>> to_device(const Device& device, const Program& program,
                                                const Problem2d& problem) {
  auto arrays = std::make_unique<DeviceArrays>();
  auto bring = [&](const Array& array, const Spread& spread) -> Result<Array> {
    TRIREME_TRY(where, indexing(program, spread, problem.columns, problem.constants));
    std::int64_t size = extent_bytes(array, where.row.extent(problem.rows), where.column.extent(problem.columns));
    TRIREME_TRY(memory, device.allocate(std::max<std::int64_t>(size, 16)));
    if (size) TRIREME_CHECK(device.copy(memory.get(), array.data, size));
    Array moved = array;
    moved.data = memory.get();
    arrays->memory.push_back(std::move(memory));
    return moved;
  };
  for (std::size_t k = 0; k < program.operands.size(); ++k) {
    if (program.operands[k].constant) {
      arrays->operands.emplace_back();
      continue;
    }
    TRIREME_TRY(moved, bring(problem.operands[k], program.operands[k].spread));
    arrays->operands.push_back(moved);
  }
  for (std::size_t k = 0; k < program.results.size(); ++k) {
    TRIREME_TRY(moved, bring(problem.results[k], program.results[k].spread));
    arrays->results.push_back(moved);
  }
  arrays->problem = problem;
  arrays->problem.operands = arrays->operands;
  arrays->problem.results = arrays->results;
  return arrays;
}

Status CudaExecutable::run(const Problem2d& problem, const RunOptions& options) {
  TRIREME_CHECK(check_layout(kernels_, program_, problem));
  TRIREME_TRY(arrays, to_device(device_, program_, problem));
  Blocks blocks = cut_rows(kernels_, problem.rows, problem.columns);
  TRIREME_TRY(workspace, device_.allocate(std::max<std::int64_t>(blocks.workspace_bytes, 16)));
  TRIREME_TRY(stream, device_.stream());
  std::int64_t step = rows_of_a_call(blocks, problem.rows, options.chunk_rows);
  for (std::int64_t first = 0; first < problem.rows; first += step)
    TRIREME_CHECK(
        launch(arrays->problem, blocks, workspace.get(), stream.get(), first, std::min(first + step, problem.rows)));
  TRIREME_CHECK(launch_columns(arrays->problem, blocks, workspace.get(), stream.get()));
  TRIREME_CHECK(device_.synchronize(stream.get()));
  for (std::size_t k = 0; k < program_.results.size(); ++k) {
    TRIREME_TRY(where, indexing(program_, program_.results[k].spread, problem.columns, problem.constants));
    std::int64_t size =
        extent_bytes(problem.results[k], where.row.extent(problem.rows), where.column.extent(problem.columns));
    if (size) TRIREME_CHECK(device_.copy(problem.results[k].data, arrays->results[k].data, size));
  }
  return Done{};
}

std::string CudaExecutable::describe() const {
  return fmt::format("{}, {}, {} registers, {} bytes of local memory, {} bytes shared", device_.facts().name,
                     print(config_), facts_.registers, facts_.local_bytes, kernels_.rows.scratch_bytes);
}

std::string missing() {
  Result<const Driver*> driver = Driver::instance();
  return driver ? std::string() : driver.error().message;
}

Result<std::unique_ptr<Executable>> compile(const Program& program, const Facts& facts) {
  TRIREME_TRY(driver, Driver::instance());
  TRIREME_TRY(device, driver->device(0));
  TRIREME_TRY(made, CudaExecutable::create(*device, program, choose_config(program, machine_of(*device), facts)));
  return std::unique_ptr<Executable>(std::move(made));
}

}  // namespace trireme::cuda
