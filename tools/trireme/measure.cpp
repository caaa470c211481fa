#include "measure.hpp"

#include <algorithm>
#include <chrono>

#include "device_choice.hpp"
#include "devices/arguments.hpp"
#include "sources.hpp"

namespace trireme::cli {
namespace {

// Less than a second of the reference, for rms_norm.
constexpr std::int64_t most_checked_elements = 1 << 20;

std::int64_t bytes_moved(const Prepared& prepared) {
  std::vector<bool> used = reachable(prepared.program);
  std::vector<bool> read(prepared.program.operands.size());
  for (NodeId id = 0; id < prepared.program.size(); ++id)
    if (used[id] && prepared.program[id].op == Op::Operand) read[prepared.program[id].payload] = true;
  std::int64_t total = 0;
  auto add = [&](const Buffer& buffer) {
    total += buffer.entries() * static_cast<std::int64_t>(bytes(buffer.array.type));
  };
  for (std::size_t k = 0; k < read.size(); ++k)
    if (read[k]) add(prepared.buffers.operands[k]);
  for (const Buffer& buffer : prepared.buffers.results) add(buffer);
  return total;
}

Problem first_rows(Problem problem) {
  std::int64_t rows = std::max<std::int64_t>(1, most_checked_elements / problem.columns());
  if (problem.rows() <= rows) return problem;
  problem.shape.erase(problem.shape.begin(), problem.shape.end() - problem.axes);
  problem.shape.insert(problem.shape.begin(), rows);
  return problem;
}

Status check(const Problem& problem, const DeviceEntry& device, int threads, Measurement& measurement) {
  TRIREME_TRY(prepared, load_problem(first_rows(problem)));
  TRIREME_CHECK(run_once(reference_device(), prepared, {}));
  KeptResults wanted = keep_results(prepared);
  TRIREME_CHECK(run_once(device, prepared, {.threads = threads}));
  measurement.difference = first_difference(prepared, wanted);
  measurement.checked_rows = prepared.problem.rows();
  return Done{};
}

}  // namespace

Result<Measurement> measure(const Problem& problem, const DeviceEntry& device, const MeasureOptions& options) {
  Measurement measurement{.device = device.name};
  TRIREME_CHECK(check(problem, device, options.threads, measurement));
  if (measurement.difference) return measurement;
  TRIREME_TRY(prepared, load_problem(problem));
  measurement.bytes = bytes_moved(prepared);
  auto start = std::chrono::steady_clock::now();
  TRIREME_TRY(executable, device.compile(prepared.program, facts_of(prepared.program, prepared.view())));
  measurement.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  measurement.how = executable->describe();
  TRIREME_TRY(timing, executable->time(prepared.view(), {.threads = options.threads,
                                                         .seconds = options.seconds,
                                                         .bytes = measurement.bytes,
                                                         .progress = options.progress}));
  measurement.timing = std::move(timing);
  return measurement;
}

double best(const std::vector<double>& seconds) { return *std::min_element(seconds.begin(), seconds.end()); }

double median(std::vector<double> seconds) {
  auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

const Timing::Copy& fastest_copy(const Timing& timing) {
  return *std::min_element(timing.copies.begin(), timing.copies.end(),
                           [](const auto& a, const auto& b) { return best(a.seconds) < best(b.seconds); });
}

}  // namespace trireme::cli
