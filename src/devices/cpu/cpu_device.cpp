#include "devices/cpu/cpu_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "devices/arguments.hpp"
#include "devices/cpu/code_memory.hpp"
#include "devices/cpu/compiled.hpp"
#include "devices/cpu/packing.hpp"
#include "devices/parallel.hpp"
#include "ir/contract.hpp"
#include "schedule/across.hpp"
#include "targets/targets.hpp"

namespace trireme::cpu {
namespace {

using Entry = void(const std::uint64_t* args, std::int64_t first, std::int64_t last, std::int64_t total);

std::int64_t workers_for(const Blocks& blocks, const RunOptions& options) {
  return std::clamp<std::int64_t>(options.threads, 1, std::max<std::int64_t>(blocks.count, 1));
}

// One path to run a program: its kernels, and what is copied for them.
struct KernelPath {
  KernelPath(const Program& program, const Layout& copied, Config chosen, const InstructionSet& set,
             std::shared_ptr<const Compiled> made)
      : config(std::move(chosen)), code(std::move(made)), packing(program, copied, code->kernels, *set.moves) {}

  const Kernels& kernels() const { return code->kernels; }
  // Vectors of scratch begin at cache lines.
  std::int64_t slot_bytes() const {
    return whole_lines(static_cast<std::int64_t>(kernels().rows.slots.size() * sizeof(std::uint64_t)));
  }
  std::int64_t worker_bytes(std::int64_t columns) const {
    return slot_bytes() + whole_lines(scratch_bytes(kernels(), columns));
  }
  DirectExecutable::MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const {
    Blocks blocks = cut_rows(kernels(), rows, columns);
    std::int64_t held = packing.window(blocks, rows, columns, options.chunk_rows).held;
    std::int64_t workers = workers_for(blocks, options);
    return {
        blocks.workspace_bytes + packing.shared_bytes(rows, columns) + workers * packing.worker_bytes(held, columns),
        workers * worker_bytes(columns)};
  }

  Config config;
  std::shared_ptr<const Compiled> code;
  Packing packing;
};

// A problem's calls of the kernels.
struct Calls {
  const KernelPath& path;
  const Packing::Run& run;
  const Blocks& blocks;
  const RunOptions& options;
  std::int64_t workers;
  std::byte *copies, *own;

  std::uint64_t* args(std::int64_t worker) const {
    return reinterpret_cast<std::uint64_t*>(own + worker * path.worker_bytes(run.problem.columns));
  }

  // Each worker has rows of its own: whole row blocks, evenly, and lines as whole as blocks let them be.
  void rows_apart() const {
    const std::int64_t rows = run.problem.rows, together = run.window.together;
    const std::int64_t part = rows_of_a_call(blocks, together);
    const std::int64_t takers = std::clamp<std::int64_t>((rows + part - 1) / part, 1, workers);
    auto first_row = [&](int worker) {
      std::int64_t lines = (rows * worker / takers + together / 2) / together * together;
      std::int64_t row = (lines + blocks.row_block - 1) / blocks.row_block * blocks.row_block;
      return worker == takers ? rows : std::min(rows, row);
    };
    const std::int64_t copy_bytes = path.packing.worker_bytes(run.window.held, run.problem.columns);
    in_parallel(options.parallel_for, static_cast<int>(takers), [&](int worker) {
      const Packing::Worker mine{copies + worker * copy_bytes, first_row(worker), first_row(worker + 1)};
      for (std::int64_t first = mine.from; first < mine.to; first += run.window.step) {
        const std::int64_t last = std::min(first + run.window.step, mine.to);
        path.packing.begin_rows(run, mine, first, last, args(worker));
        kernel(0)(args(worker), first, last, rows);
        path.packing.finish_rows(run, mine, first, last);
        path.packing.advance(run, mine, first, last);
      }
    });
  }

  // All workers copy columns of the same rows, take blocks of them, and copy columns back.
  void rows_together() const {
    const std::int64_t rows = run.problem.rows;
    const Packing::Worker all{copies, 0, rows};
    for (std::int64_t first = 0; first < rows; first += run.window.step) {
      const std::int64_t last = std::min(first + run.window.step, rows);
      const std::int64_t count = (last - first + blocks.row_block - 1) / blocks.row_block;
      each([&](int worker) { path.packing.begin_rows(run, all, first, last, args(worker), {worker, workers}); });
      each([&](int worker) {
        const std::int64_t from = first + count * worker / workers * blocks.row_block;
        const std::int64_t to = std::min(last, first + count * (worker + 1) / workers * blocks.row_block);
        if (from < to) kernel(0)(args(worker), from, to, rows);
      });
      each([&](int worker) { path.packing.finish_rows(run, all, first, last, {worker, workers}); });
      path.packing.advance(run, all, first, last);
    }
  }

  void columns() const {  // the kernels that add up partial sums
    for (std::size_t k = 1; k < path.code->code.size(); ++k) {
      const std::int64_t count =
          entries_of(path.kernels(), path.kernels().columns[k - 1], run.problem.rows, run.problem.columns);
      each([&](int worker) {
        const std::int64_t first = count * worker / workers, last = count * (worker + 1) / workers;
        if (first < last) kernel(k)(args(worker), first, last, run.problem.rows);
      });
    }
  }

 private:
  Entry* kernel(std::size_t k) const { return path.code->code.entry<Entry>(k); }
  template <typename Body>
  void each(Body&& body) const {
    in_parallel(options.parallel_for, static_cast<int>(workers), body);
  }
};

class CpuExecutable : public HostExecutable {
 public:
  CpuExecutable(Program program, const Layout& layout, bool streaming, const InstructionSet& set, KernelPath path,
                std::optional<KernelPath> across, std::optional<KernelPath> backwards)
      : program_(std::move(program)),
        layout_(layout),
        streaming_(streaming),
        set_(&set),
        path_(std::move(path)),
        across_(std::move(across)),
        backwards_(std::move(backwards)) {}

  MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override {
    MemoryBytes most = path_.memory_bytes(rows, columns, options);
    for (const std::optional<KernelPath>* each : {&across_, &backwards_}) {
      if (!*each) continue;
      MemoryBytes other = (*each)->memory_bytes(rows, columns, options);
      most = {std::max(most.workspace, other.workspace), std::max(most.own, other.own)};
    }
    return most;
  }

  int workers(std::int64_t rows, std::int64_t columns, const RunOptions& options) const override {
    return static_cast<int>(workers_for(cut_rows(path_.kernels(), rows, columns), options));
  }

  // `own` holds, for each worker, its slots and its scratch; the workspace partial sums, then copies.
  Status run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const override {
    TRIREME_CHECK(check_layout(layout_, program_, problem));
    const bool across = goes_across(problem, options);
    const bool backwards = backwards_ && lies_backwards(backwards_->config.layout, problem);
    const KernelPath& path = across ? *across_ : backwards ? *backwards_ : path_;
    const Packing& packing = path.packing;
    Blocks blocks = cut_rows(path.kernels(), problem.rows, problem.columns);
    const std::int64_t workers = workers_for(blocks, options);
    Packing::Window window = packing.window(blocks, problem.rows, problem.columns, options.chunk_rows, &problem);
    if (across) window.together = rows_of_a_piece();
    const std::optional<Packing::Window> of_all =
        options.chunk_rows ? std::nullopt : packing.window_of_all(window, blocks, problem, workers);
    const Packing::Run run{problem, lent.workspace + blocks.workspace_bytes, of_all.value_or(window), streaming_};
    std::byte* copies = run.shared + packing.shared_bytes(problem.rows, problem.columns);
    const Calls calls{path, run, blocks, options, workers, copies, lent.own};
    packing.begin(run);
    for (std::int64_t worker = 0; worker < workers; ++worker) {
      std::uint64_t* args = calls.args(worker);
      fill_slots(path.kernels(), program_, problem, blocks,
                 {.partials = reinterpret_cast<std::uint64_t>(lent.workspace),
                  .scratch = reinterpret_cast<std::uint64_t>(args) + path.slot_bytes()},
                 args);
      packing.point(run, args);
    }
    of_all ? calls.rows_together() : calls.rows_apart();
    calls.columns();
    packing.finish(run);
    return Done{};
  }

  std::string describe() const override {
    std::string text = fmt::format("{}, {}", set_->title, print(chosen().config));
    if (across_) text += "; rows side by side, taken as vectors; with other strides";
    if (backwards_) text += "; columns backwards, taken where they lie";
    if (backwards_ && !backwards_->packing.empty()) text += fmt::format("; copied: {}", backwards_->packing.names());
    if (backwards_) text += "; with other strides";
    if (!path_.packing.empty())
      text += fmt::format("{} columns apart, copied: {}", across_ || backwards_ ? "" : ";", path_.packing.names());
    return text;
  }
  std::string kernel_hash() const override { return chosen().code->hash; }
  Identity identity() const override {
    return {.arch = std::string(set_->processor), .isa = std::string(set_->arch), .config = print(chosen().config)};
  }

 private:
  const KernelPath& chosen() const { return across_ ? *across_ : backwards_ ? *backwards_ : path_; }
  bool goes_across(const Problem2d& problem, const RunOptions& options) const {
    if (!across_ || rows_together(program_, problem) < across_->config.lanes) return false;
    // One turn leaves other threads nothing to do, where all of them can make copies (softmax backward 128x65536 f16
    // with two threads: AVX2 4.3 ms, and 3.8 with copies).
    if (options.threads > 1 && across_->config.prefetch && problem.rows <= rows_of_a_piece()) return false;
    return across_->kernels().sums.empty() ||
           row_block_of(program_, problem.rows, problem.columns) % across_->config.lanes == 0;
  }
  // Workers do not share lines that rows lie side by side in.
  std::int64_t rows_of_a_piece() const {
    std::int64_t smallest = 8;
    for (const Output& each : program_.results)
      smallest = std::min(smallest, static_cast<std::int64_t>(bytes(*each.type)));
    return across_piece_bytes(across_->config.prefetch) / smallest;
  }

  Program program_;
  Layout layout_;   // of the problem; a path's config has what its kernels see of it
  bool streaming_;  // results outgrow the caches
  const InstructionSet* set_;
  KernelPath path_;                      // for all problems of this layout
  std::optional<KernelPath> across_;     // for those whose rows lie side by side
  std::optional<KernelPath> backwards_;  // for those where the columns that its layout says so of lie backwards
};

}  // namespace

Result<std::unique_ptr<trireme::Executable>> compile(const Program& program, const Facts& facts,
                                                     const InstructionSet& set) {
  TRIREME_TRY(machine, set.target->machine(set.arch));
  Facts packed = facts;
  std::optional<KernelPath> across;
  if (!facts.config || facts.config->across) {
    TRIREME_TRY(config, config_for(program, machine, facts));
    if (config.across) {
      TRIREME_TRY(code, compiled(program, config, set));
      across.emplace(program, Layout{}, config, set, std::move(code));
      packed.config.reset();
    }
  }
  packed.together = 0;
  bool streaming = false;
  auto with_copies = [&](const Layout& layout) -> Result<KernelPath> {
    packed.layout = Packing::remains(program, layout);
    TRIREME_TRY(config, config_for(program, machine, packed));
    // Copies of results are read again at once.
    streaming = config.streaming;
    for (std::size_t k = program.operands.size(); k < program.array_count(); ++k)
      config.streaming = config.streaming && !layout.array(k).strided;
    TRIREME_TRY(code, compiled(program, config, set));
    return KernelPath(program, layout, config, set, std::move(code));
  };
  std::optional<KernelPath> backwards;
  if (facts.backwards && !across) {
    TRIREME_TRY(made, with_copies(*facts.backwards));
    backwards.emplace(std::move(made));
  }
  TRIREME_TRY(path, with_copies(facts.layout));
  return std::unique_ptr<trireme::Executable>(std::make_unique<CpuExecutable>(
      program, facts.layout, streaming, set, std::move(path), std::move(across), std::move(backwards)));
}

std::vector<DeviceEntry> devices_of(std::span<const InstructionSet> sets, std::string_view needs,
                                    std::string (*features)()) {
  std::vector<DeviceEntry> all;
  for (const InstructionSet& set : sets) {
    if (set.base) continue;
    auto best = [&set, sets]() -> const InstructionSet& {
      for (const InstructionSet& each : sets)
        if (each.base == &set && each.missing().empty()) return each;
      return set;
    };
    all.push_back(
        {.name = fmt::format("cpu:{}", set.arch),
         .missing =
             [&set] {
               std::string reason = set.missing();
               return reason.empty() ? code_memory_denied() : reason;
             },
         .compile = [best](const Program& program, const Facts& facts) { return compile(program, facts, best()); },
         .machine = [&set] { return set.target->machine(set.arch); },
         .target = set.target->name,
         .arch = set.arch,
         .needs = needs,
         .threads = true,
         .timed = true,
         .features = features});
  }
  return all;
}

}  // namespace trireme::cpu
