// trireme::run: one call, over a bounded cache of plans.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <mutex>
#include <unordered_map>

#include "devices/fork_mutex.hpp"
#include "layout/flatten.hpp"
#include "plan/plan_state.hpp"
#include "support/out_of_memory.hpp"

namespace trireme {
namespace {

// The plans used last. Threads that want the same plan wait for one of them to make it, and for no other.
class PlanCache {
 public:
  template <typename Make>
  Result<Plan> find_or_make(const std::string& key, Make&& make) {
    std::shared_ptr<Entry> entry = find_or_add(key);
    std::call_once(entry->once, [&] {
      entry->plan.emplace(make());
      entry->made = true;
    });
    if (!*entry->plan) forget(key, entry);  // what failed may be tried again
    return *entry->plan;
  }

  std::size_t size() {
    std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    const pid_t pid = getpid();
    std::once_flag once;
    std::optional<Result<Plan>> plan;
    std::atomic<bool> made = false;
  };
  using Entries = std::list<std::pair<std::string, std::shared_ptr<Entry>>>;  // used last, first

  std::shared_ptr<Entry> find_or_add(const std::string& key) {
    Entries dropped;  // after the lock: plans of devices take other locks when they go
    std::lock_guard lock(mutex_);
    if (auto it = by_key_.find(key); it != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      std::shared_ptr<Entry>& entry = it->second->second;
      // After a fork nobody goes on with what the parent's other threads were making.
      if (!entry->made && entry->pid != getpid()) entry = std::make_shared<Entry>();
      return entry;
    }
    Entries made;
    made.emplace_front(key, std::make_shared<Entry>());
    by_key_.emplace(key, made.begin());
    entries_.splice(entries_.begin(), made);  // in both or, where memory runs out, in neither
    if (entries_.size() > max_cached_plans) {
      by_key_.erase(entries_.back().first);
      dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
    }
    return entries_.front().second;
  }

  void forget(const std::string& key, const std::shared_ptr<Entry>& entry) {
    std::lock_guard lock(mutex_);
    auto it = by_key_.find(key);
    if (it == by_key_.end() || it->second->second != entry) return;
    entries_.erase(it->second);
    by_key_.erase(it);
  }

  ForkMutex mutex_;
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_key_;
};

PlanCache& cache() {
  static PlanCache* plans = new PlanCache;  // never destroyed: threads may outlive main
  return *plans;
}

std::string key_of(std::string_view program, const std::map<std::string, View>& arrays, const RunSettings& settings,
                   const Device& device) {
  std::string key =
      fmt::format("{} {} {} {} {}", program, settings.backward, device.name(), settings.axes.count, settings.threads);
  for (const auto& [name, value] : settings.constants) key += fmt::format(" {}={:a}", name, value);
  for (const auto& [name, view] : arrays)
    key += fmt::format(" {}:{}:{}:{}", name, trireme::name(view.type), print(view.shape), print_strides(view.strides));
  return key;
}

Result<PlanOptions> options_of(std::string_view program, const std::map<std::string, View>& arrays,
                               const RunSettings& settings) {
  PlanOptions options{.axes = settings.axes, .constants = settings.constants, .threads = settings.threads};
  TRIREME_TRY(forward, RowProgram::named(program));
  options.program = forward;
  if (settings.backward) {
    TRIREME_TRY(backward, forward.differentiate());
    options.program = backward;
  }
  options.results.emplace();
  std::map<std::string, Dims> shapes;
  for (const RowProgram::Parameter& each : options.program.signature()) {
    if (each.kind == RowProgram::Kind::Constant) continue;
    auto given = arrays.find(each.name);
    if (given == arrays.end()) {
      if (each.kind == RowProgram::Kind::Operand) options.absent.insert(each.name);
      continue;
    }
    if (each.kind == RowProgram::Kind::Result) options.results->insert(each.name);
    options.types[each.name] = given->second.type;
    if (!given->second.strides.empty()) options.strides[each.name] = given->second.strides;
    shapes[each.name] = given->second.shape;
  }
  TRIREME_TRY(shape, problem_shape(options.program, shapes, settings.axes, settings.constants));
  options.shape = shape;
  return options;
}

}  // namespace

Status run(std::string_view program, const std::map<std::string, View>& arrays, const RunSettings& settings) {
  return or_out_of_memory([&]() -> Status {
    std::optional<Device> device = settings.device;
    if (!device) {
      TRIREME_TRY(cpu, Device::cpu());
      device = cpu;
    }
    TRIREME_TRY(plan, cache().find_or_make(key_of(program, arrays, settings, *device), [&]() -> Result<Plan> {
      TRIREME_TRY(options, options_of(program, arrays, settings));
      return Plan::create(*device, options);
    }));
    Args args = plan.args();
    for (const auto& [name, view] : arrays) args[name] = view;
    TRIREME_TRY(workspace, plan.make_workspace());
    return plan.run(args, settings.stream, workspace.span());  // giving device memory back waits for who uses it
  });
}

std::size_t cached_plans() { return cache().size(); }

}  // namespace trireme
