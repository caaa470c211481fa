#include "plan/tune.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <set>
#include <string>
#include <thread>

#include "devices/arguments.hpp"
#include "devices/cache/kernel_cache.hpp"
#include "devices/parallel.hpp"
#include "language/print.hpp"
#include "schedule/candidates.hpp"
#include "schedule/valid.hpp"

namespace trireme {
namespace {

// Everything that a winner depends on; rows to a power of two, so that a batch a little larger is served too.
Result<CacheKey> key_of(const DeviceEntry& device, const Program& program, const Facts& facts) {
  if (!device.machine) return Error{Code::Unsupported, "the " + device.name + " device has no configs to choose from"};
  TRIREME_TRY(machine, device.machine());
  CacheKey key("config", fmt::format("{} {} columns, {}", program.name, facts.columns, device.name));
  key.with("device", device.name)
      .with("program", print(program))
      .with("columns", facts.columns)
      .with("rows", static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(facts.rows))))
      .with("alignment", facts.alignment)
      .with("in place", facts.in_place)
      .with("rows apart", facts.rows_apart)
      .with("alignment of results", facts.result_alignment)
      .with("rows side by side", static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(facts.together))));
  for (std::int64_t fact : {static_cast<std::int64_t>(machine.register_bytes), machine.cache_bytes,
                            machine.shared_bytes, static_cast<std::int64_t>(machine.processors)})
    key.with("machine", fact);
  const Layout& layout = facts.backwards ? *facts.backwards : facts.layout;
  for (const ArrayLayout& each : layout.arrays)
    key.with("array", each.strided + 2 * each.backwards + 4 * (each.row_jumps + 16 * std::int64_t{each.column_jumps}));
  return key;
}

}  // namespace

namespace {

using Executables = std::vector<Result<std::unique_ptr<Executable>>>;

// All cores compile; what is made then runs alone.
Executables compile_all(const DeviceEntry& device, const Program& program, const Facts& facts,
                        const std::vector<Config>& configs) {
  Executables made;
  for (std::size_t k = 0; k < configs.size(); ++k) made.emplace_back(Error{Code::Internal, "not compiled"});
  std::atomic<std::size_t> next = 0;
  in_parallel(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), [&](int) {
    Facts with = facts;
    for (std::size_t at; (at = next++) < configs.size();) {
      with.config = configs[at];
      made[at] = device.compile(program, with);
    }
  });
  return made;
}

}  // namespace

Result<std::vector<Tried>> try_configs(const DeviceEntry& device, const Program& program, const Problem2d& problem,
                                       const TuneOptions& options) {
  if (!device.machine) return Error{Code::Unsupported, "the " + device.name + " device has no configs to choose from"};
  TRIREME_TRY(whole, device.machine());
  Machine machine = whole;
  if (options.by_model) machine.tuned = {};
  const Facts facts = facts_of(program, problem);
  std::optional<Executable::Placed> placed;
  std::vector<Tried> tried;
  std::set<std::string> seen;
  // `from` and `to`: which part of the work this is.
  auto try_all = [&](std::vector<Config> configs, double from, double to) -> Status {
    std::erase_if(configs, [&](const Config& each) { return !seen.insert(print(each)).second; });
    const Executables made = compile_all(device, program, facts, configs);
    for (std::size_t k = 0; k < configs.size(); ++k) {
      const bool first = tried.empty();
      tried.push_back({configs[k]});
      if (!made[k] && first) return made[k].error();
      if (made[k] && !placed) {
        TRIREME_TRY(there, (*made[k])->place(problem));
        placed = there;
      }
      if (made[k]) {
        const TimeOptions time{.threads = options.threads, .seconds = options.seconds, .bytes = options.bytes};
        Result<Timing> timing = (*made[k])->time(*placed, time);
        if (!timing && first) return timing.error();
        if (timing) {  // what a device cannot launch, such as a cluster that does not fit it, is no candidate
          tried.back().seconds = *std::min_element(timing->runs.begin(), timing->runs.end());
          for (const Timing::Copy& copy : timing->copies)
            tried.back().copy_seconds =
                std::min(tried.back().copy_seconds, *std::min_element(copy.seconds.begin(), copy.seconds.end()));
        }
      }
      if (options.progress)
        options.progress(from + (to - from) * static_cast<double>(k + 1) / static_cast<double>(configs.size()));
    }
    std::stable_sort(tried.begin() + 1, tried.end(),
                     [](const Tried& a, const Tried& b) { return a.seconds < b.seconds; });
    return Done{};
  };
  std::vector<Config> candidates = candidate_configs(program, machine, facts);
  sort_by_cost(program, machine, facts, candidates);
  candidates.resize(std::min(candidates.size(), options.most));
  candidates.insert(candidates.begin(), choose_config(program, machine, facts));
  if (options.by_model) candidates.push_back(choose_config(program, whole, facts));
  TRIREME_CHECK(try_all(std::move(candidates), 0, 0.8));
  // One step further from the best, the chosen one among them.
  std::vector<Config> near;
  for (std::size_t k = 0; k < std::min<std::size_t>(tried.size(), 4); ++k)
    for (Config& each : neighbours(tried[k].config)) near.push_back(std::move(each));
  std::erase_if(near, [valid = Validity(program, machine, facts)](const Config& each) { return !valid(each); });
  TRIREME_CHECK(try_all(std::move(near), 0.8, 1));
  if (options.progress) options.progress(1);
  return tried;
}

Status remember_config(const DeviceEntry& device, const Program& program, const Facts& facts, const Config& config) {
  TRIREME_TRY(key, key_of(device, program, facts));
  KernelCache& cache = KernelCache::process();
  if (!cache.disk()) return Error{Code::Unsupported, "there is no cache to remember it in: " + cache.off_reason()};
  Status kept = cache.put(key, print(config));
  if (!kept) return Error{kept.error().code, "it is not remembered: " + kept.error().message};
  return Done{};
}

std::optional<Config> remembered_config(const DeviceEntry& device, const Program& program, const Facts& facts) {
  // Every plan asks: where nothing was ever kept, no folder is made for the question.
  static const std::string folder = KernelCache::from_environment().folder;
  if (!device.machine || folder.empty() || access(folder.c_str(), R_OK) != 0) return std::nullopt;
  Result<CacheKey> key = key_of(device, program, facts);
  if (!key) return std::nullopt;
  std::optional<std::string> text = KernelCache::process().find(*key);
  if (!text) return std::nullopt;
  Result<Config> config = parse_config(*text);
  return config ? std::optional(*config) : std::nullopt;
}

}  // namespace trireme
