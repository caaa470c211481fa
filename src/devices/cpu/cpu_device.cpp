#include "devices/cpu/cpu_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "devices/arguments.hpp"
#include "devices/cpu/code_memory.hpp"
#include "devices/parallel.hpp"
#include "schedule/lower.hpp"

namespace trireme::cpu {
namespace {

using Entry = void(const std::uint64_t* args, std::int64_t first, std::int64_t last, std::int64_t total);

class CpuExecutable : public trireme::Executable {
 public:
  CpuExecutable(Program program, Config config, Kernels kernels, x86::Isa isa, CodeMemory rows,
                std::vector<CodeMemory> columns)
      : program_(std::move(program)),
        config_(config),
        kernels_(std::move(kernels)),
        isa_(isa),
        rows_(std::move(rows)),
        columns_(std::move(columns)) {}

  Status run(const Problem2d& problem, const RunOptions& options) override {
    TRIREME_CHECK(check_layout(kernels_, program_, problem));
    Blocks blocks = cut_rows(kernels_, problem.rows, problem.columns);
    std::int64_t workers = std::clamp<std::int64_t>(options.threads, 1, std::max<std::int64_t>(blocks.count, 1));
    std::int64_t line = 64;  // vectors of scratch and of partial rows begin at cache lines
    std::int64_t scratch = (scratch_bytes(kernels_, problem.columns) + line - 1) / line * line;
    if (memory_.size() < static_cast<std::size_t>(blocks.workspace_bytes + workers * scratch + line))
      memory_.resize(blocks.workspace_bytes + workers * scratch + line);
    std::uint64_t base = (reinterpret_cast<std::uint64_t>(memory_.data()) + line - 1) / line * line;
    auto args_of = [&](std::int64_t worker) {
      return fill_slots(kernels_, program_, problem, blocks,
                        {.partials = base, .scratch = base + blocks.workspace_bytes + worker * scratch});
    };
    std::int64_t step = rows_of_a_call(blocks, problem.rows, options.chunk_rows);
    in_parallel(static_cast<int>(workers), [&](int worker) {
      std::vector<std::uint64_t> args = args_of(worker);
      // Whole row blocks, evenly.
      std::int64_t from = blocks.count * worker / workers * blocks.row_block;
      std::int64_t to = std::min(problem.rows, blocks.count * (worker + 1) / workers * blocks.row_block);
      for (std::int64_t first = from; first < to; first += step)
        rows_.entry<Entry>()(args.data(), first, std::min(first + step, to), problem.rows);
    });
    for (const CodeMemory& columns : columns_)
      in_parallel(static_cast<int>(workers), [&](int worker) {
        std::vector<std::uint64_t> args = args_of(worker);
        std::int64_t first = problem.columns * worker / workers, last = problem.columns * (worker + 1) / workers;
        if (first < last) columns.entry<Entry>()(args.data(), first, last, problem.rows);
      });
    return Done{};
  }

  std::string describe() const override {
    return fmt::format("{}, {}", isa_ == x86::Isa::Avx512 ? "AVX-512" : "AVX2", print(config_));
  }

 private:
  Program program_;
  Config config_;
  Kernels kernels_;
  x86::Isa isa_;
  CodeMemory rows_;
  std::vector<CodeMemory> columns_;
  std::vector<std::byte> memory_;
};

}  // namespace

Result<std::unique_ptr<trireme::Executable>> compile(const Program& program, const Facts& facts, x86::Isa isa) {
  Machine machine{.simd = true, .register_bytes = isa == x86::Isa::Avx512 ? 64 : 32};
  Config config = choose_config(program, machine, facts);
  TRIREME_TRY(kernels, lower(program, config));
  TRIREME_TRY(rows_code, x86::emit(kernels.rows, isa));
  TRIREME_TRY(rows, CodeMemory::create(rows_code.bytes));
  std::vector<CodeMemory> columns;
  for (const Kernel& kernel : kernels.columns) {
    TRIREME_TRY(code, x86::emit(kernel, isa));
    TRIREME_TRY(memory, CodeMemory::create(code.bytes));
    columns.push_back(std::move(memory));
  }
  return std::unique_ptr<trireme::Executable>(
      std::make_unique<CpuExecutable>(program, config, std::move(kernels), isa, std::move(rows), std::move(columns)));
}

}  // namespace trireme::cpu
