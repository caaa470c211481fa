#include "devices/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "layout/indexing.hpp"
#include "layout/overlap.hpp"
#include "schedule/lower.hpp"
#include "targets/ptx/emit.hpp"

namespace trireme::cuda {
namespace {

std::uint32_t blocks_for(std::int64_t work, std::int64_t each) {
  return static_cast<std::uint32_t>((work + each - 1) / each);
}

// A kernel's parameters are at most 4096 bytes, three of its numbers come after the slots.
constexpr std::size_t most_slots = 4096 / sizeof(std::uint64_t) - 3;

std::uint64_t hashed(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xCBF29CE484222325;
  for (char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001B3;
  return hash;
}

// Bytes from an array's lowest to its highest entry, counted from the entry (0, 0).
Result<ByteRange> bytes_of(const Program& program, const Spread& spread, const Problem2d& problem, const Array& array) {
  TRIREME_TRY(where, indexing(program, spread, problem.columns, problem.constants));
  return byte_range({array, where.row.extent(problem.rows), where.column.extent(problem.columns)});
}

}  // namespace

Machine machine_of(const Device& device) {
  return {.simd = false,
          .shared_bytes = device.facts().shared_bytes_per_block,
          .clusters = device.facts().clusters,
          .processors = device.facts().multiprocessors};
}

Result<LoadedKernels> LoadedKernels::create(const Device& device, const Program& program, const Config& config) {
  int capability = device.facts().capability;
  if (capability < 80)
    return Error{Code::Unsupported, fmt::format("{} has compute capability {}.{}; at least 8.0 is needed",
                                                device.facts().name, capability / 10, capability % 10)};
  LoadedKernels made(device);
  TRIREME_TRY(kernels, lower(program, config));
  made.config_ = config;
  made.kernels_ = std::move(kernels);
  if (made.kernels_.rows.slots.size() > most_slots)
    return Error{Code::Unsupported, fmt::format("{} needs {} parameters; a kernel takes {}", program.name,
                                                made.kernels_.rows.slots.size(), most_slots)};
  // PTX of the oldest architecture that has what the kernels use runs on all later ones.
  TRIREME_TRY(text, ptx::emit(made.kernels_, fmt::format("sm_{}", capability >= 90 ? 90 : 80)));
  made.hash_ = fmt::format("{:016x}", hashed(text));
  TRIREME_TRY(module, device.load(text));
  made.module_ = std::move(module);
  auto entry = [&](const Kernel& kernel) -> Result<Function> {
    TRIREME_TRY(function, device.function(made.module_, kernel.name.c_str()));
    TRIREME_CHECK(device.allow_shared(function, static_cast<std::uint32_t>(kernel.scratch_bytes)));
    return function;
  };
  TRIREME_TRY(rows, entry(made.kernels_.rows));
  made.rows_ = rows;
  TRIREME_TRY(facts, device.function_facts(rows));
  made.facts_ = facts;
  for (const Kernel& kernel : made.kernels_.columns) {
    TRIREME_TRY(columns, entry(kernel));
    TRIREME_CHECK(device.function_facts(columns));  // loads it
    made.columns_.push_back(columns);
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
  const trireme::Launch& form = kernels_.rows.launch;
  std::uint64_t args[most_slots];
  fill_slots(kernels_, program, problem, blocks, {.partials = reinterpret_cast<std::uint64_t>(partials)}, args);
  std::int64_t step = rows_of_a_launch(blocks, form), total = problem.rows;
  while (first < last) {
    std::int64_t end = last - first > step ? first + step : last;
    std::int64_t row_blocks = (end - first + blocks.row_block - 1) / blocks.row_block;
    void* params[] = {args, &first, &end, &total};
    TRIREME_CHECK(
        device_->launch(rows_,
                        {.grid = {blocks_for(row_blocks, form.teams) * static_cast<std::uint32_t>(form.cluster)},
                         .block = {static_cast<std::uint32_t>(form.threads())},
                         .shared_bytes = static_cast<std::uint32_t>(kernels_.rows.scratch_bytes),
                         .cluster = form.cluster > 1 ? static_cast<std::uint32_t>(form.cluster) : 0,
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
    std::int64_t first = 0, last = problem.columns, total = problem.rows;
    void* params[] = {args, &first, &last, &total};
    TRIREME_CHECK(device_->launch(columns_[k],
                                  {.grid = {blocks_for(last, kernel.launch.columns_covered)},
                                   .block = {static_cast<std::uint32_t>(kernel.launch.threads())},
                                   .shared_bytes = static_cast<std::uint32_t>(kernel.scratch_bytes),
                                   .stream = stream},
                                  params));
  }
  return Done{};
}

Result<std::unique_ptr<CudaExecutable>> CudaExecutable::create(const Device& device, const Program& program,
                                                               const Config& config) {
  TRIREME_TRY(vectors, LoadedKernels::create(device, program, config));
  return std::unique_ptr<CudaExecutable>(new CudaExecutable(device, program, std::move(vectors)));
}

const Result<LoadedKernels>& CudaExecutable::singles() const {
  std::call_once(singles_made_, [&] {
    const Config& chosen = vectors_.config();
    Facts facts{.columns = chosen.columns, .alignment = 1, .layout = chosen.layout};
    singles_.emplace(LoadedKernels::create(device_, program_, choose_config(program_, machine_of(device_), facts)));
  });
  return *singles_;
}

Result<const LoadedKernels*> CudaExecutable::kernels_for(const Problem2d& problem, StreamHandle stream) const {
  if (vectors_.config().vector <= aligned_elements(program_, problem)) return &vectors_;
  if (!prepared_.load(std::memory_order_acquire)) {
    TRIREME_TRY(capturing, device_.is_capturing(stream));
    if (capturing)
      return Error{Code::InvalidArgument,
                   "an array begins at no multiple of 16 bytes, and the kernels for that are not loaded yet; while a "
                   "graph is captured nothing can be loaded: call prepare() before"};
    TRIREME_CHECK(prepare());
  }
  return &**singles_;
}

Status CudaExecutable::prepare() const {
  if (vectors_.config().vector == 1) return Done{};
  if (!singles()) return singles().error();
  prepared_.store(true, std::memory_order_release);
  return Done{};
}

DirectExecutable::MemoryBytes CudaExecutable::memory_bytes(std::int64_t rows, std::int64_t columns,
                                                           const RunOptions&) const {
  return {cut_rows(vectors_.kernels(), rows, columns).workspace_bytes, 0};
}

Status CudaExecutable::run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const {
  auto stream = static_cast<StreamHandle>(lent.stream);
  TRIREME_TRY(chosen, kernels_for(problem, stream));
  const LoadedKernels& code = *chosen;
  TRIREME_CHECK(check_layout(code.config().layout, program_, problem));
  Blocks blocks = cut_rows(code.kernels(), problem.rows, problem.columns);
  std::int64_t step = rows_of_a_call(blocks, problem.rows, options.chunk_rows);
  for (std::int64_t first = 0; first < problem.rows; first += step)
    TRIREME_CHECK(code.launch_rows(program_, problem, blocks, lent.workspace, stream, first,
                                   std::min(first + step, problem.rows)));
  return code.launch_columns(program_, problem, blocks, lent.workspace, stream);
}

Status CudaExecutable::check_memory(const void* memory) const {
  Result<int> at = device_.device_of(memory);
  if (!at)
    return Error{Code::InvalidArgument, fmt::format("the memory at {} is none that CUDA knows; arrays of a plan for a "
                                                    "GPU lie in that GPU's memory ({})",
                                                    memory, at.error().message)};
  if (*at == device_.facts().ordinal) return Done{};
  return Error{Code::InvalidArgument,
               fmt::format("the memory belongs to cuda:{}, the plan to cuda:{}", *at, device_.facts().ordinal)};
}

Result<std::shared_ptr<std::byte>> CudaExecutable::allocate(std::int64_t bytes) const {
  TRIREME_TRY(memory, device_.allocate(static_cast<std::size_t>(bytes)));
  auto kept = std::make_shared<Memory>(std::move(memory));
  return std::shared_ptr<std::byte>(kept, static_cast<std::byte*>(kept->get()));
}

Result<std::unique_ptr<DeviceArrays>> to_device(const Device& device, const Program& program,
                                                const Problem2d& problem) {
  auto arrays = std::make_unique<DeviceArrays>();
  auto bring = [&](const Array& array, const Spread& spread) -> Result<Array> {
    TRIREME_TRY(range, bytes_of(program, spread, problem, array));
    // As far from a multiple of 256 bytes as on the host.
    char* from = static_cast<char*>(array.data) + range.low;
    std::uint64_t offset = reinterpret_cast<std::uint64_t>(from) % 256;
    TRIREME_TRY(memory, device.allocate(offset + static_cast<std::uint64_t>(range.high - range.low)));
    char* to = static_cast<char*>(memory.get()) + offset;
    if (range.high > range.low) TRIREME_CHECK(device.copy(to, from, range.high - range.low));
    Array moved = array;
    moved.data = to - range.low;
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
  TRIREME_TRY(arrays, to_device(device_, program_, problem));
  TRIREME_TRY(workspace, device_.allocate(memory_bytes(problem.rows, problem.columns, options).workspace));
  TRIREME_TRY(stream, device_.stream());
  TRIREME_CHECK(run_in(arrays->problem, options,
                       {.workspace = static_cast<std::byte*>(workspace.get()), .stream = stream.get()}));
  TRIREME_CHECK(device_.synchronize(stream.get()));
  for (std::size_t k = 0; k < program_.results.size(); ++k) {
    TRIREME_TRY(range, bytes_of(program_, program_.results[k].spread, problem, problem.results[k]));
    auto low = [&](const Array& array) { return static_cast<char*>(array.data) + range.low; };
    if (range.high > range.low)
      TRIREME_CHECK(device_.copy(low(problem.results[k]), low(arrays->results[k]), range.high - range.low));
  }
  return Done{};
}

std::string CudaExecutable::describe() const {
  return fmt::format("{}, {}, {} registers, {} bytes of local memory, {} bytes shared", device_.facts().name,
                     print(vectors_.config()), vectors_.facts().registers, vectors_.facts().local_bytes,
                     vectors_.kernels().rows.scratch_bytes);
}

std::string missing(int ordinal) {
  Result<const Driver*> driver = Driver::instance();
  if (!driver) return driver.error().message;
  Result<const Device*> device = (*driver)->device(ordinal);
  return device ? std::string() : device.error().message;
}

Result<std::unique_ptr<Executable>> compile(const Program& program, const Facts& facts, int ordinal) {
  TRIREME_TRY(driver, Driver::instance());
  TRIREME_TRY(device, driver->device(ordinal));
  TRIREME_TRY(made, CudaExecutable::create(*device, program, choose_config(program, machine_of(*device), facts)));
  return std::unique_ptr<Executable>(std::move(made));
}

}  // namespace trireme::cuda
