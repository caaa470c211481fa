// PTX in the table of targets.
#include <fmt/format.h>

#include <charconv>

#include "targets/ptx/emit.hpp"
#include "targets/targets.hpp"

namespace trireme::ptx {

namespace {

// The largest GPU of an architecture: multiprocessors, and the threads that one holds (CUDA C++ Programming Guide,
// technical specifications per compute capability), clock and what copies reach of the memory's bandwidth. Those of an
// H200 are measured, the others vendors' figures, nine tenths of the bandwidth.
struct Generation {
  int sm, processors, threads;
  double clock, bandwidth;
};
constexpr Generation generations[] = {
    {80, 108, 2048, 1.41e9, 1.8e12},   // A100
    {86, 84, 1536, 1.7e9, 0.84e12},    // RTX 3090
    {89, 142, 1536, 2.5e9, 0.78e12},   // L40S
    {90, 132, 2048, 1.75e9, 4.1e12},   // H200
    {100, 148, 2048, 1.85e9, 7.2e12},  // B200
    {120, 170, 1536, 2.4e9, 1.6e12},   // RTX 5090
};

// That of the newest architecture that is no newer.
const Generation& generation_of(int sm) {
  const Generation* found = &generations[0];
  for (const Generation& each : generations)
    if (each.sm <= sm) found = &each;
  return *found;
}

// Shared memory a block may ask for: the same specifications.
Result<trireme::Machine> machine_of_arch(std::string_view arch) {
  int sm = 0;
  if (!arch.starts_with("sm_") || std::from_chars(arch.data() + 3, arch.data() + arch.size(), sm).ec != std::errc{} ||
      sm < 80)
    return unknown_arch(target, arch);
  const bool small = sm == 86 || sm == 89 || sm >= 120;
  trireme::Machine machine{.simd = false, .clusters = sm >= 90};
  machine.shared_bytes = (small ? 99 : sm < 90 ? 163 : 227) * 1024;
  machine.instructions = {.storage = {{{1, 1, 0, 0},    // f64
                                       {1, 1, 1, 1},    // f32
                                       {1, 1, 1, 2},    // f16: a conversion serves two
                                       {1, 1, 1, 2},    // bf16
                                       {2, 2, 1, 2},    // f8e4m3
                                       {2, 2, 1, 2},    // f8e5m2
                                       {2, 4, 1, 0},    // i8
                                       {1, 2, 1, 0},    // i32
                                       {2, 3, 1, 0},    // i64
                                       {2, 4, 1, 0},    // u8
                                       {8, 8, 1, 2}}},  // f8e8m0
                          .extremum = 1,
                          .divide = 10,
                          .square_root = 10};
  const Generation& generation = generation_of(sm);
  machine.processors = generation.processors;
  machine.multiprocessor.threads = generation.threads;
  machine.multiprocessor.clock = generation.clock;
  machine.multiprocessor.bandwidth = generation.bandwidth;
  if (sm == 90) machine.tuned = "sm_90";
  return machine;
}

Result<Artifact> emit_artifact(const Kernels& kernels, std::string_view arch, const std::string&) {
  TRIREME_TRY(text, emit(kernels, arch));
  return Artifact{{text.begin(), text.end()}};
}

Result<std::string> list(const Kernels& kernels, std::string_view arch) { return emit(kernels, arch, true); }

std::string entries_of(const Kernels& kernels, const Artifact&) {
  std::string text;
  auto add = [&](const trireme::Kernel& kernel, std::string_view when) {
    const Launch& form = kernel.launch;
    const bool by_entries = form.sums >= 0 && kernels.sums[form.sums].where.row.present;
    text += fmt::format("entry {}(args, first, last, total){}: {} threads a block, grid ceil({} / {}){}\n", kernel.name,
                        when, form.threads(), by_entries ? "(last - first)" : "row blocks", form.teams,
                        form.cluster > 1 ? fmt::format(" * {0}, in clusters of {0} blocks", form.cluster) : "");
    if (by_entries) text += "  first and last count the row blocks of all entries, all_blocks of them\n";
  };
  for (const trireme::Kernel& each : kernels.before) add(each, ", before");
  add(kernels.rows, "");
  for (const trireme::Kernel& each : kernels.columns) {
    const SumClass& sums = kernels.sums[each.launch.sums];
    text += fmt::format("entry {}(args, first, last, total), afterwards: {} threads a block, grid ", each.name,
                        each.launch.threads());
    if (sums.over_everything()) text += fmt::format("{}, a block a result\n", sums.results.size());
    else
      text += fmt::format("{}ceil(columns / {}){}\n", sums.where.row.present ? "rows of entries * " : "",
                          each.launch.columns_covered,
                          sums.where.row.present ? ", last the product of that and these columns" : "");
  }
  return text;
}

std::string manifest_of_target(const Kernels& kernels, std::string_view arch) {
  std::string entries;
  auto add = [&](const trireme::Kernel& kernel) {
    const Launch& launch = kernel.launch;
    entries += fmt::format(R"({}{{"name":"{}","threads":{},"teams":{},"cluster":{},"columns":{},"sharedBytes":{}}})",
                           entries.empty() ? "" : ",", kernel.name, launch.threads(), launch.teams, launch.cluster,
                           launch.columns_covered, kernel.scratch_bytes);
  };
  for (const trireme::Kernel& each : kernels.before) add(each);
  add(kernels.rows);
  for (const trireme::Kernel& each : kernels.columns) add(each);
  return fmt::format(R"("arch":"{}","entries":[{}],)", arch, entries);
}

constexpr std::string_view common[] = {"sm_80", "sm_90", "sm_100", "sm_120"};

}  // namespace

const Target target = {
    .name = "ptx",
    .form = Target::Form::Text,
    .default_arch = "sm_80",
    .archs = "sm_80 (default) and up",
    .common_archs = common,
    .machine = machine_of_arch,
    .emit = emit_artifact,
    .listing = list,
    .entries = entries_of,
    .manifest = manifest_of_target,
};

}  // namespace trireme::ptx
