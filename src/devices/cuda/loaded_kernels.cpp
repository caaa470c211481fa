#include "devices/cuda/loaded_kernels.hpp"

#include <fmt/format.h>

#include <limits>

#include "targets/ptx/emit.hpp"
#include "targets/targets.hpp"

namespace trireme::cuda {
namespace {

std::uint32_t blocks_for(std::int64_t work, std::int64_t each) {
  return static_cast<std::uint32_t>((work + each - 1) / each);
}

// A kernel's parameters are at most 4096 bytes, three of its numbers come after the slots.
constexpr std::size_t most_slots = 4096 / sizeof(std::uint64_t) - 3;

}  // namespace

std::string_view arch_for(const Device& device) { return device.facts().capability >= 90 ? "sm_90" : "sm_80"; }

Result<LoadedKernels> LoadedKernels::create(const Device& device, const Program& program, const Config& config,
                                            std::string_view arch) {
  int capability = device.facts().capability;
  if (capability < 80)
    return Error{Code::Unsupported, fmt::format("{} has compute capability {}.{}; at least 8.0 is needed",
                                                device.facts().name, capability / 10, capability % 10)};
  LoadedKernels made(device);
  TRIREME_TRY(compiled, compile(program, config, ptx::target, arch));
  made.config_ = std::move(compiled.config);
  made.kernels_ = std::move(compiled.kernels);
  if (made.kernels_.rows.slots.size() > most_slots)
    return Error{Code::Unsupported, fmt::format("{} needs {} parameters; a kernel takes {}", program.name,
                                                made.kernels_.rows.slots.size(), most_slots)};
  made.hash_ = compiled.artifact.hash();
  TRIREME_TRY(module, device.load(std::string(compiled.artifact.bytes.begin(), compiled.artifact.bytes.end())));
  made.module_ = std::move(module);
  auto entry = [&](const Kernel& kernel) -> Result<Function> {
    TRIREME_TRY(function, device.function(made.module_, kernel.name.c_str()));
    TRIREME_CHECK(device.allow_shared(function, static_cast<std::uint32_t>(kernel.scratch_bytes)));
    if (kernel.launch.meets && kernel.launch.cluster > 8) TRIREME_CHECK(device.allow_large_clusters(function));
    return function;
  };
  TRIREME_TRY(rows, entry(made.kernels_.rows));
  made.rows_ = rows;
  TRIREME_TRY(facts, device.function_facts(rows));
  made.facts_ = facts;
  for (auto [list, functions] :
       {std::pair(&made.kernels_.before, &made.before_), std::pair(&made.kernels_.columns, &made.columns_)})
    for (const Kernel& kernel : *list) {
      TRIREME_TRY(function, entry(kernel));
      TRIREME_CHECK(device.function_facts(function));  // loads it
      functions->push_back(function);
    }
  return made;
}

std::int64_t rows_of_a_launch(const Blocks& blocks, const trireme::Launch& form) {
  constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;
  std::int64_t row_blocks = most_blocks / form.cluster * form.teams;
  return row_blocks > std::numeric_limits<std::int64_t>::max() / blocks.row_block
             ? std::numeric_limits<std::int64_t>::max()
             : row_blocks * blocks.row_block;
}

Status LoadedKernels::launch_rows(const Program& program, const Problem2d& problem, const Blocks& blocks,
                                  void* partials, StreamHandle stream, std::int64_t first, std::int64_t last) const {
  return launch_blocks(rows_, kernels_.rows, program, problem, blocks, partials, stream, first, last);
}

Status LoadedKernels::launch_before(std::size_t which, const Program& program, const Problem2d& problem, void* partials,
                                    StreamHandle stream) const {
  const Kernel& kernel = kernels_.before[which];
  const Blocks blocks = cut_rows(kernels_, kernel, problem.rows, problem.columns);
  return launch_blocks(before_[which], kernel, program, problem, blocks, partials, stream, 0, blocks.units);
}

Status LoadedKernels::launch_blocks(Function function, const Kernel& kernel, const Program& program,
                                    const Problem2d& problem, const Blocks& blocks, void* partials, StreamHandle stream,
                                    std::int64_t first, std::int64_t last) const {
  const trireme::Launch& form = kernel.launch;
  std::uint64_t args[most_slots];
  fill_slots(kernels_, program, problem, blocks, {.partials = reinterpret_cast<std::uint64_t>(partials)}, args);
  std::int64_t step = rows_of_a_launch(blocks, form), total = problem.rows;
  while (first < last) {
    std::int64_t end = last - first > step ? first + step : last;
    std::int64_t row_blocks = (end - first + blocks.row_block - 1) / blocks.row_block;
    void* params[] = {args, &first, &end, &total};
    TRIREME_CHECK(
        device_->launch(function,
                        {.grid = {blocks_for(row_blocks, form.teams) * static_cast<std::uint32_t>(form.cluster)},
                         .block = {static_cast<std::uint32_t>(form.threads())},
                         .shared_bytes = static_cast<std::uint32_t>(kernel.scratch_bytes),
                         .cluster = form.meets ? static_cast<std::uint32_t>(form.cluster) : 0,
                         .stream = stream},
                        params));
    first = end;
  }
  return Done{};
}

Status LoadedKernels::launch_columns(const Program& program, const Problem2d& problem, const Blocks& blocks,
                                     void* partials, StreamHandle stream) const {
  std::uint64_t args[most_slots];
  fill_slots(kernels_, program, problem, blocks, {.partials = reinterpret_cast<std::uint64_t>(partials)}, args);
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const Kernel& kernel = kernels_.columns[k];
    std::int64_t first = 0, last = entries_of(kernels_, kernel, problem.rows, problem.columns), total = problem.rows;
    if (last == 0) continue;  // a grid has a block at least, and that one would write
    void* params[] = {args, &first, &last, &total};
    TRIREME_CHECK(device_->launch(columns_[k],
                                  {.grid = {blocks_for(last, kernel.launch.columns_covered)},
                                   .block = {static_cast<std::uint32_t>(kernel.launch.threads())},
                                   .shared_bytes = static_cast<std::uint32_t>(kernel.scratch_bytes),
                                   .overlap_previous = device_->facts().capability >= 90,
                                   .stream = stream},
                                  params));
  }
  return Done{};
}

}  // namespace trireme::cuda
