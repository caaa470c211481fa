#include "devices/wasm/wasm_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "layout/indexing.hpp"
#include "layout/overlap.hpp"
#include "targets/targets.hpp"

namespace trireme::wasm {

Result<std::unique_ptr<WasmExecutable>> WasmExecutable::create(const Program& program, const Config& config,
                                                               const Options& options, Engine engine) {
  TRIREME_TRY(compiled, trireme::compile(program, config, target, arch_of(options)));
  std::unique_ptr<WasmExecutable> made(new WasmExecutable(program, std::move(compiled), options));
  if (engine == Engine::Wasmtime) {
    TRIREME_TRY(sandbox, compile_in_wasmtime(made->module_));
    made->sandbox_ = std::move(sandbox);
  }
  return made;
}

const Staged::Range& Staged::range_of(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), byte,
                                       [](const std::byte* at, const Range& range) { return at < range.begin; });
  return *(behind - 1);
}

Status Staged::finish() const {
  for (const Result2d& result : results_) {
    const auto size = static_cast<std::size_t>(bytes(result.array.type));
    const bool together = !layout_of(result.array, result.column_extent).strided;
    const std::int64_t pieces = together ? 1 : result.column_extent;
    for (std::int64_t row = 0; row < result.row_extent; ++row)
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        auto* to = static_cast<std::byte*>(result.array.entry(row, piece));
        const Range& range = range_of(to);
        std::memcpy(to, range.copy.data() + (to - range.begin), together ? size * result.column_extent : size);
      }
  }
  return Done{};
}

Result<Staged> WasmExecutable::stage(const Problem2d& problem, const RunOptions& options) const {
  TRIREME_CHECK(check_layout(config_.layout, program_, problem));
  Staged staged;
  const auto add = [&](const Array& array, const Spread& spread) -> Result<Staged::Result2d> {
    TRIREME_TRY(where, indexing(program_, spread, problem.columns, problem.constants));
    const Staged::Result2d extents{array, row_entries(where.row, array, problem.rows),
                                   where.column.extent(problem.columns)};
    if (extents.row_extent == 0 || extents.column_extent == 0) return extents;
    const ByteRange range = byte_range({array, extents.row_extent, extents.column_extent});
    const auto* data = static_cast<const std::byte*>(array.data);
    staged.ranges_.push_back({data + range.low, data + range.high, {}});
    return extents;
  };
  for (std::size_t k = 0; k < program_.array_count(); ++k) {
    const Program::Array what = program_.array(k);
    if (!what.in_memory) continue;
    TRIREME_TRY(extents, add(problem.arrays[k], what.spread));
    if (what.result) staged.results_.push_back(extents);
  }

  // One copy of memory that several arrays share.
  std::vector<Staged::Range>& ranges = staged.ranges_;
  std::ranges::sort(ranges, {}, &Staged::Range::begin);
  std::size_t kept = 0;
  for (std::size_t k = 1; k < ranges.size(); ++k) {
    if (ranges[k].begin < ranges[kept].end) ranges[kept].end = std::max(ranges[kept].end, ranges[k].end);
    else ranges[++kept] = ranges[k];
  }
  ranges.resize(std::min(ranges.size(), kept + 1));

  Job& job = staged.job;
  job.module = module_;
  job.relaxed = options_.relaxed;
  const Blocks blocks = cut_rows(kernels_, problem.rows, problem.columns);
  job.slots = fill_slots(kernels_, program_, problem, blocks, {});
  const std::size_t scratch = 0, partials = 1, first_range = 2;
  job.buffers = {{.bytes = static_cast<std::size_t>(scratch_bytes(kernels_, problem.columns))},
                 {.bytes = static_cast<std::size_t>(blocks.workspace_bytes)}};
  for (Staged::Range& range : ranges) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(range.begin);
    range.copy.assign(begin, begin + (range.end - range.begin));
    job.buffers.push_back({.data = range.copy});
  }
  for (std::size_t slot = 0; slot < job.slots.size(); ++slot) {
    const auto [what, array, which] = kernels_.rows.slots[slot];
    if (what != Slot::What::Pointer) continue;
    if (array < 0) {
      job.relocations.push_back(
          {slot, array == scratch_array ? scratch : partials, static_cast<std::int64_t>(job.slots[slot])});
      continue;
    }
    const auto* address = reinterpret_cast<const std::byte*>(job.slots[slot]);
    if (ranges.empty() || address < ranges[0].begin) continue;  // an array without entries
    const Staged::Range& range = staged.range_of(address);
    job.relocations.push_back(
        {slot, first_range + static_cast<std::size_t>(&range - ranges.data()), address - range.begin});
  }
  const std::int64_t step = rows_of_a_call(blocks, options.chunk_rows);
  for (std::int64_t first = 0; first < problem.rows; first += step)
    job.calls.push_back({.first = first, .last = std::min(first + step, problem.rows), .total = problem.rows});
  if (!kernels_.columns.empty())
    job.calls.push_back({.entry = Job::Call::Entry::Columns,
                         .first = 0,
                         .last = entries_of(kernels_, kernels_.columns[0], problem.rows, problem.columns)});
  return staged;
}

Status WasmExecutable::run(const Problem2d& problem, const RunOptions& options) {
  TRIREME_TRY(staged, stage(problem, options));
  TRIREME_CHECK(sandbox_ ? run_in_wasmtime(*sandbox_, staged.job) : run_in_node(staged.job));
  return staged.finish();
}

std::string WasmExecutable::describe() const {
  const std::string engine = sandbox_ ? fmt::format("wasmtime {}", sandbox_->library().version) : "node";
  return fmt::format("WebAssembly in {}, {} bytes{}, {}", engine, module_.size(),
                     options_.relaxed ? ", relaxed SIMD" : "", print(config_));
}

namespace {

std::string relaxed_missing_in_node() {
  static const std::string reason = [] {
    const Status status = run_in_node(Job{.relaxed = true});
    return status || status.error().code == trireme::Code::Internal ? "" : status.error().message;
  }();
  return reason;
}

}  // namespace

std::string missing(Choice choice, bool relaxed) {
  if (choice == Choice::Any && wasmtime()) return wasmtime_missing(relaxed);
  if (std::string reason = node_missing(); !reason.empty())
    return choice == Choice::Any ? wasmtime().error().message + "; and " + reason : reason;
  return relaxed ? relaxed_missing_in_node() : "";
}

namespace {

Result<std::unique_ptr<Executable>> compile(const Program& program, const Facts& facts, Choice choice,
                                            const Options& options) {
  TRIREME_TRY(machine, target.machine(arch_of(options)));
  TRIREME_TRY(config, config_for(program, machine, facts));
  const Engine engine = choice == Choice::Any && wasmtime() ? Engine::Wasmtime : Engine::Node;
  TRIREME_TRY(made, WasmExecutable::create(program, config, options, engine));
  return std::unique_ptr<Executable>(std::move(made));
}

// An engine takes about 10 to compile a module; node takes as many times more to start.
int in_any_engine() { return wasmtime_missing(false).empty() ? 10 : 100; }
int in_node() { return 100; }

DeviceEntry entry_of(std::string name, Choice choice, const Options& options) {
  return {
      .name = std::move(name),
      .missing = [=] { return missing(choice, options.relaxed); },
      .compile = [=](const Program& program, const Facts& facts) { return compile(program, facts, choice, options); },
      .target = target.name,
      .arch = arch_of(options),
      .needs =
          "needs wasmtime's library (pip install wasmtime, or its path in TRIREME_WASMTIME), or node (Debian: "
          "apt install nodejs)",
      .about_ms = choice == Choice::Any ? in_any_engine : in_node};
}

}  // namespace

std::vector<DeviceEntry> devices() {
  return {entry_of("wasm", Choice::Any, {}), entry_of("wasm:relaxed", Choice::Any, {.relaxed = true}),
          entry_of("wasm:compact", Choice::Any, {.compact = true}),
          entry_of("wasm:scalar", Choice::Any, {.compact = true, .scalar = true}),
          entry_of("wasm:node", Choice::Node, {})};
}

}  // namespace trireme::wasm
