#include "devices/cpu/cpu_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "devices/arguments.hpp"
#include "devices/cpu/compiled.hpp"
#include "devices/cpu/packing.hpp"
#include "devices/parallel.hpp"

namespace trireme::cpu {
namespace {

using Entry = void(const std::uint64_t* args, std::int64_t first, std::int64_t last, std::int64_t total);

class CpuExecutable : public HostExecutable {
 public:
  CpuExecutable(Program program, const Layout& layout, bool streaming, Config config, x86::Isa isa,
                std::shared_ptr<const Compiled> code)
      : program_(std::move(program)),
        layout_(layout),
        streaming_(streaming),
        config_(config),
        isa_(isa),
        code_(std::move(code)),
        kernels_(code_->kernels),
        packing_(program_, layout_, kernels_, isa) {}

  MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override {
    Blocks blocks = cut_rows(kernels_, rows, columns);
    std::int64_t held = packing_.window(blocks, rows, columns, options.chunk_rows).held;
    std::int64_t workers = workers_for(blocks, options);
    return {
        blocks.workspace_bytes + packing_.shared_bytes(rows, columns) + workers * packing_.worker_bytes(held, columns),
        workers * worker_bytes(columns)};
  }

  int workers(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override {
    return static_cast<int>(workers_for(cut_rows(kernels_, rows, columns), options));
  }

  // `own` holds, for each worker, its slots and its scratch; the workspace partial sums, then copies.
  Status run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const override {
    TRIREME_CHECK(check_layout(layout_, program_, problem));
    Blocks blocks = cut_rows(kernels_, problem.rows, problem.columns);
    std::int64_t workers = workers_for(blocks, options);
    auto args_of = [&](std::int64_t worker) {
      std::byte* memory = lent.own + worker * worker_bytes(problem.columns);
      return reinterpret_cast<std::uint64_t*>(memory);
    };
    const Packing::Window window = packing_.window(blocks, problem.rows, problem.columns, options.chunk_rows, &problem);
    const Packing::Run packing{problem, lent.workspace + blocks.workspace_bytes, window, streaming_};
    std::byte* copies = packing.shared + packing_.shared_bytes(problem.rows, problem.columns);
    packing_.begin(packing);
    for (std::int64_t worker = 0; worker < workers; ++worker) {
      std::uint64_t* args = args_of(worker);
      fill_slots(kernels_, program_, problem, blocks,
                 {.partials = reinterpret_cast<std::uint64_t>(lent.workspace),
                  .scratch = reinterpret_cast<std::uint64_t>(args) + slot_bytes()},
                 args);
      packing_.point(packing, args);
    }
    // Whole row blocks, evenly.
    std::int64_t part = rows_of_a_call(blocks, problem.rows, window.together);
    std::int64_t parts = (problem.rows + part - 1) / part, takers = std::clamp<std::int64_t>(parts, 1, workers);
    in_parallel(options.parallel_for, static_cast<int>(takers), [&](int worker) {
      const Packing::Worker own{copies + worker * packing_.worker_bytes(window.held, problem.columns),
                                parts * worker / takers * part,
                                std::min(problem.rows, parts * (worker + 1) / takers * part)};
      for (std::int64_t first = own.from; first < own.to; first += window.step) {
        std::int64_t last = std::min(first + window.step, own.to);
        packing_.begin_rows(packing, own, first, last, args_of(worker));
        code_->code.entry<Entry>()(args_of(worker), first, last, problem.rows);
        packing_.finish_rows(packing, own, first, last);
      }
    });
    for (std::size_t k = 1; k < code_->code.size(); ++k)
      in_parallel(options.parallel_for, static_cast<int>(workers), [&](int worker) {
        std::int64_t first = problem.columns * worker / workers, last = problem.columns * (worker + 1) / workers;
        if (first < last) code_->code.entry<Entry>(k)(args_of(worker), first, last, problem.rows);
      });
    packing_.finish(packing);
    return Done{};
  }

  std::string describe() const override {
    std::string text = fmt::format("{}, {}",
                                   isa_ == x86::Isa::Avx2     ? "AVX2"
                                   : isa_ == x86::Isa::Avx512 ? "AVX-512"
                                                              : "AVX-512 BF16",
                                   print(config_));
    if (!packing_.empty()) text += fmt::format("; columns apart, copied: {}", packing_.names());
    return text;
  }
  std::string kernel_hash() const override { return code_->hash; }
  Identity identity() const override {
    const char* isa = isa_ == x86::Isa::Avx2 ? "avx2" : isa_ == x86::Isa::Avx512 ? "avx512" : "avx512_bf16";
    return {.arch = "x86-64", .isa = isa, .config = print(config_)};
  }

 private:
  static std::int64_t workers_for(const Blocks& blocks, const RunOptions& options) {
    return std::clamp<std::int64_t>(options.threads, 1, std::max<std::int64_t>(blocks.count, 1));
  }
  // Vectors of scratch begin at cache lines.
  std::int64_t slot_bytes() const {
    return whole_lines(static_cast<std::int64_t>(kernels_.rows.slots.size() * sizeof(std::uint64_t)));
  }
  std::int64_t worker_bytes(std::int64_t columns) const {
    return slot_bytes() + whole_lines(scratch_bytes(kernels_, columns));
  }

  Program program_;
  Layout layout_;   // of the problem; config_ has what the kernels see of it
  bool streaming_;  // results outgrow the caches
  Config config_;
  x86::Isa isa_;
  std::shared_ptr<const Compiled> code_;
  const Kernels& kernels_;  // of code_
  Packing packing_;
};

}  // namespace

Result<std::unique_ptr<trireme::Executable>> compile(const Program& program, const Facts& facts, x86::Isa isa) {
  Facts packed = facts;
  packed.layout = Packing::remains(facts.layout);
  TRIREME_TRY(config, config_for(program, x86::machine_of(isa), packed));
  // Copies of results are read again at once.
  bool streaming = config.streaming;
  for (const ArrayLayout& each : facts.layout.results) config.streaming = config.streaming && !each.strided;
  TRIREME_TRY(code, compiled(program, config, isa));
  return std::unique_ptr<trireme::Executable>(
      std::make_unique<CpuExecutable>(program, facts.layout, streaming, config, isa, std::move(code)));
}

}  // namespace trireme::cpu
