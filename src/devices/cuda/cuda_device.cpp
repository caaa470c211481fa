#include "devices/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "layout/buffers.hpp"
#include "layout/indexing.hpp"
#include "layout/overlap.hpp"
#include "targets/ptx/emit.hpp"
#include "targets/targets.hpp"

namespace trireme::cuda {
namespace {

// Bytes from an array's lowest to its highest entry, counted from the entry (0, 0).
Result<ByteRange> bytes_of(const Program& program, const Spread& spread, const Problem2d& problem, const Array& array) {
  TRIREME_TRY(where, indexing(program, spread, problem.columns, problem.constants));
  return byte_range({array, row_entries(where.row, array, problem.rows), where.column.extent(problem.columns)});
}

}  // namespace

Machine machine_of(const Device& device) {
  const int capability = device.facts().capability;
  Machine machine =
      ptx::target.machine(fmt::format("sm_{}", std::max(capability, 80))).value();  // older ones are refused
  machine.shared_bytes = device.facts().shared_bytes_per_block;
  machine.clusters = device.facts().clusters;
  machine.processors = device.facts().multiprocessors;
  return machine;
}

Result<std::unique_ptr<CudaExecutable>> CudaExecutable::create(const Device& device, const Program& program,
                                                               const Config& config, std::string_view arch) {
  if (arch.empty()) arch = arch_for(device);
  TRIREME_TRY(vectors, LoadedKernels::create(device, program, config, arch));
  return std::unique_ptr<CudaExecutable>(new CudaExecutable(device, program, arch, std::move(vectors)));
}

Result<std::unique_ptr<CudaExecutable>> CudaExecutable::create(const Device& device, const Program& program,
                                                               const Facts& facts) {
  TRIREME_TRY(config, config_for(program, machine_of(device), facts));
  return create(device, program, config);
}

const Result<LoadedKernels>& CudaExecutable::singles() const {
  std::call_once(singles_made_, [&] {
    const Config& chosen = vectors_.config();
    Facts facts{.columns = chosen.columns, .alignment = 1, .layout = chosen.layout};
    singles_.emplace(
        LoadedKernels::create(device_, program_, choose_config(program_, machine_of(device_), facts), arch_));
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
  for (std::size_t k = 0; k < code.kernels().before.size(); ++k)
    TRIREME_CHECK(code.launch_before(k, program_, problem, lent.workspace, stream));
  std::int64_t step = rows_of_a_call(blocks, options.chunk_rows);
  for (std::int64_t first = 0; first < blocks.units; first += step)
    TRIREME_CHECK(code.launch_rows(program_, problem, blocks, lent.workspace, stream, first,
                                   std::min(first + step, blocks.units)));
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
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    arrays->arrays.emplace_back();
    if (!program.array(k).in_memory) continue;
    TRIREME_TRY(moved, bring(problem.arrays[k], program.array(k).spread));
    arrays->arrays.back() = moved;
  }
  arrays->problem = problem;
  arrays->problem.arrays = arrays->arrays;
  return arrays;
}

Status CudaExecutable::run(const Problem2d& problem, const RunOptions& options) {
  TRIREME_TRY(arrays, to_device(device_, program_, problem));
  MemoryBytes bytes = memory_bytes(problem.rows, problem.columns, options);
  TRIREME_TRY(workspace, allocate(bytes.workspace));
  std::vector<std::byte, CacheLineAllocator<std::byte>> own(static_cast<std::size_t>(bytes.own));
  TRIREME_TRY(stream, device_.stream());
  TRIREME_CHECK(
      run_in(arrays->problem, options, {.workspace = workspace.get(), .own = own.data(), .stream = stream.get()}));
  TRIREME_CHECK(device_.synchronize(stream.get()));
  for (std::size_t k = program_.operands.size(); k < program_.array_count(); ++k) {
    TRIREME_TRY(range, bytes_of(program_, program_.array(k).spread, problem, problem.arrays[k]));
    auto low = [&](const Array& array) { return static_cast<char*>(array.data) + range.low; };
    if (range.high > range.low)
      TRIREME_CHECK(device_.copy(low(problem.arrays[k]), low(arrays->arrays[k]), range.high - range.low));
  }
  return Done{};
}

std::string CudaExecutable::describe() const {
  return fmt::format("{}, {}, {} registers, {} bytes of local memory, {} bytes shared", device_.facts().name,
                     print(vectors_.config()), vectors_.facts().registers, vectors_.facts().local_bytes,
                     vectors_.kernels().rows.scratch_bytes);
}

std::string CudaExecutable::kernel_hash() const { return vectors_.hash(); }

Executable::Identity CudaExecutable::identity() const {
  return {.arch = fmt::format("sm_{}", device_.facts().capability), .isa = "ptx", .config = print(vectors_.config())};
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
  TRIREME_TRY(made, CudaExecutable::create(*device, program, facts));
  return std::unique_ptr<Executable>(std::move(made));
}

namespace {

DeviceEntry entry_of(int ordinal);

std::optional<DeviceEntry> further(std::string_view which) {
  int ordinal = 0;
  auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), ordinal);
  if (error != std::errc() || end != which.data() + which.size() || ordinal < 0) return std::nullopt;
  return entry_of(ordinal);
}

DeviceEntry entry_of(int ordinal) {
  return {.name = ordinal == 0 ? "cuda" : fmt::format("cuda:{}", ordinal),
          .missing = [ordinal] { return missing(ordinal); },
          .compile = [ordinal](const Program& program, const Facts& facts) { return compile(program, facts, ordinal); },
          .machine = [ordinal]() -> Result<Machine> {
            TRIREME_TRY(driver, Driver::instance());
            TRIREME_TRY(device, driver->device(ordinal));
            return machine_of(*device);
          },
          .target = ptx::target.name,
          .needs = "needs an NVIDIA GPU of compute capability 8.0 or more, and its driver's libcuda.so.1; no toolkit",
          .accelerator = true,
          .timed = true,
          .about_ms = [] { return 30; },
          .further = further};
}

}  // namespace

std::vector<DeviceEntry> devices() { return {entry_of(0)}; }

}  // namespace trireme::cuda
