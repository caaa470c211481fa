// How long a run takes on the GPU: device time by events around graphs of several runs, so that neither launches nor
// the events themselves weigh; device copies of the same bytes in turn with them; and the host's time apart.
#include <algorithm>
#include <chrono>

#include "devices/cuda/cuda_device.hpp"
#include "layout/buffers.hpp"

namespace trireme::cuda {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double graph_seconds = 500e-6;  // of device time, about; events tell half microseconds apart
constexpr int most_runs_a_graph = 100;

class GraphClock {
 public:
  static Result<GraphClock> create(const Device& device) {
    GraphClock made(device);
    TRIREME_TRY(stream, device.stream());
    TRIREME_TRY(first, device.event());
    TRIREME_TRY(last, device.event());
    made.stream_ = std::move(stream), made.first_ = std::move(first), made.last_ = std::move(last);
    return made;
  }
  StreamHandle stream() const { return stream_.get(); }

  // Device seconds of what `work` puts on the stream.
  template <typename Work>
  Result<double> once(Work&& work) const {
    TRIREME_CHECK(device_->record(first_, stream()));
    TRIREME_CHECK(work());
    TRIREME_CHECK(device_->record(last_, stream()));
    TRIREME_CHECK(device_->synchronize(last_));
    TRIREME_TRY(milliseconds, device_->milliseconds(first_, last_));
    return milliseconds * 1e-3;
  }

 private:
  explicit GraphClock(const Device& device) : device_(&device) {}
  const Device* device_;
  Stream stream_;
  Event first_, last_;
};

// So many of the same in one graph.
struct Repeated {
  Graph graph;
  int count = 1;

  template <typename Work>
  static Result<Repeated> create(const Device& device, const GraphClock& clock, Work&& work) {
    TRIREME_CHECK(work());  // warm
    TRIREME_TRY(seconds, clock.once(work));
    Repeated made;
    made.count = static_cast<int>(std::clamp(graph_seconds / std::max(seconds, 1e-7), 1.0, double{most_runs_a_graph}));
    TRIREME_TRY(graph, device.capture(clock.stream(), [&]() -> Status {
      for (int k = 0; k < made.count; ++k) TRIREME_CHECK(work());
      return Done{};
    }));
    made.graph = std::move(graph);
    return made;
  }
  Result<double> seconds(const Device& device, const GraphClock& clock) const {
    TRIREME_TRY(all, clock.once([&] { return device.launch(graph, clock.stream()); }));
    return all / count;
  }
};

}  // namespace

Result<Executable::Placed> CudaExecutable::place(const Problem2d& problem) const {
  TRIREME_TRY(arrays, to_device(device_, program_, problem));
  std::shared_ptr<const DeviceArrays> kept = std::move(arrays);
  return Placed{kept->problem, kept};
}

Result<Timing> CudaExecutable::time(const Placed& placed, const TimeOptions& options) {
  const Problem2d& problem = placed.problem;
  MemoryBytes bytes = memory_bytes(problem.rows, problem.columns, {});
  TRIREME_TRY(workspace, allocate(bytes.workspace));
  std::vector<std::byte, CacheLineAllocator<std::byte>> own(static_cast<std::size_t>(bytes.own));
  auto copied = static_cast<std::size_t>(options.bytes / 2);
  TRIREME_TRY(from, device_.allocate(copied));
  TRIREME_TRY(to, device_.allocate(copied));
  TRIREME_CHECK(device_.fill(from.get(), 1, std::max<std::size_t>(copied, 1)));
  TRIREME_TRY(clock, GraphClock::create(device_));
  TRIREME_CHECK(prepare());
  auto run = [&] {
    return run_in(problem, {}, {.workspace = workspace.get(), .own = own.data(), .stream = clock.stream()});
  };
  TRIREME_TRY(runs, Repeated::create(device_, clock, run));
  TRIREME_TRY(copies, Repeated::create(device_, clock, [&] {
                return device_.copy_async(to.get(), from.get(), copied, clock.stream());
              }));
  Timing timing;
  timing.copies.push_back({"device copy", {}});
  Clock::time_point start = Clock::now();
  for (double spent = 0; timing.runs.size() < 3 || spent < options.seconds; spent = seconds_since(start)) {
    if (options.progress) options.progress(std::min(1.0, spent / options.seconds));
    TRIREME_TRY(run_seconds, runs.seconds(device_, clock));
    timing.runs.push_back(run_seconds);
    TRIREME_TRY(copy_seconds, copies.seconds(device_, clock));
    timing.copies[0].seconds.push_back(copy_seconds);
    Clock::time_point before = Clock::now();  // the stream is idle: nothing waits
    TRIREME_CHECK(run());
    timing.host.push_back(seconds_since(before));
    TRIREME_CHECK(device_.synchronize(clock.stream()));
  }
  return timing;
}

}  // namespace trireme::cuda
