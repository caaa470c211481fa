#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "device_choice.hpp"
#include "devices/arguments.hpp"
#include "math/functions.hpp"
#include "reference/oracle.hpp"
#include "schedule/work.hpp"
#include "sources.hpp"

namespace trireme::cli {
namespace {

// Less than a second of the reference, for rms_norm; the oracle takes twenty times as long an element.
constexpr std::int64_t most_checked_elements = 1 << 20, most_judged_elements = 1 << 15;

// What is done for every element: by the table of the device's machine, where it has one, conversions included; else
// counted as the functions' costs are.
double instructions_per_element(const Program& program, const DeviceEntry& device) {
  if (device.machine)
    if (const Result<Machine> machine = device.machine()) return instructions_a_vector(program, machine->instructions);
  std::vector<bool> used = reachable(program);
  double count = 0;
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    bool element =
        node.by_column || std::any_of(node.begin(), node.end(), [&](NodeId arg) { return program[arg].by_column; });
    if (used[id] && element) count += instruction_cost(program, id);
  }
  return count;
}

// The outer axes cut short, outermost first: strides are theirs still.
Problem first_rows(Problem problem, std::int64_t elements) {
  std::int64_t most = std::max<std::int64_t>(1, elements / problem.columns());
  for (std::size_t k = 0; k + problem.axes < problem.shape.size() && problem.rows() > most; ++k) {
    std::int64_t inside = problem.rows() / problem.shape[k];
    problem.shape[k] = std::max<std::int64_t>(1, most / inside);
  }
  return problem;
}

Status check(const Problem& problem, const DeviceEntry& device, int threads, Measurement& measurement) {
  TRIREME_TRY(prepared, load_problem(first_rows(problem, most_checked_elements)));
  TRIREME_CHECK(run_once(reference_device(), prepared, {}));
  KeptResults wanted = keep_results(prepared);
  TRIREME_CHECK(run_once(device, prepared, {.threads = threads}));
  measurement.difference = first_difference(prepared, wanted);
  measurement.checked_rows = prepared.problem.rows();
  return Done{};
}

// By the bits' sameness the reference's errors are the device's.
Status judge(const Problem& problem, Measurement& measurement) {
  TRIREME_TRY(prepared, load_problem(first_rows(problem, most_judged_elements)));
  TRIREME_CHECK(run_once(reference_device(), prepared, {}));
  Result<std::vector<OracleResult>> oracle = oracle_of(prepared);
  if (!oracle && oracle.error().code == Code::Unsupported) return Done{};
  if (!oracle) return oracle.error();
  ErrorSeen seen;
  for (const LargestError& each : largest_errors(prepared.bound, *oracle, prepared.result_elements()))
    if (each.worst >= seen.of_bound) seen = {each.error, each.worst};
  measurement.error = seen;
  return Done{};
}

// Eight chains side by side: a processor starts two steps a cycle, and each takes four.
std::string program_of_arithmetic() {
  std::string text = "arithmetic(x[i,j]) -> (y[i,j])\n", sum;
  for (int step = 0; step < 16; ++step)
    for (int chain = 0; chain < 8; ++chain)
      text += fmt::format("  a{0}_{1} = fma({2}, x, {0}.5)\n", chain, step,
                          step ? fmt::format("a{}_{}", chain, step - 1) : "x");
  for (int chain = 0; chain < 8; ++chain) sum += fmt::format("{}a{}_15", chain ? " + " : "", chain);
  return text + "  y = " + sum + "\n";
}

}  // namespace

std::int64_t bytes_moved(const Prepared& prepared) {
  std::vector<bool> read = read_operands(prepared.program);
  std::int64_t total = 0;
  auto add = [&](const Buffer& buffer) { total += buffer.entries() * bits(buffer.array.type) / 8; };
  for (std::size_t k = 0; k < read.size(); ++k)
    if (read[k]) add(prepared.buffers.operands[k]);
  for (const Buffer& buffer : prepared.buffers.results) add(buffer);
  return total;
}

Result<double> arithmetic_roof(const DeviceEntry& device, int threads) {
  TRIREME_TRY(problem, parse_problem("arithmetic 2048x4096"));
  TRIREME_TRY(prepared, prepare_problem(problem, program_of_arithmetic()));
  TRIREME_TRY(executable, device.compile(prepared.program, facts_of(prepared.program, prepared.view())));
  TRIREME_TRY(placed, executable->place(prepared.view()));
  TRIREME_TRY(timing, executable->time(placed, {.threads = threads, .seconds = 0.3, .bytes = bytes_moved(prepared)}));
  double elements = static_cast<double>(problem.rows() * problem.columns());
  return elements * instructions_per_element(prepared.program, device) / best(timing.runs) * 1e-9;
}

Result<Measurement> measure(const Problem& problem, const DeviceEntry& device, const MeasureOptions& options) {
  Measurement measurement{.line = print(problem), .program = problem.program, .backward = problem.backward};
  measurement.device = device.name;
  measurement.threads = options.threads;
  measurement.command = fmt::format("trireme bench \"{}\" --device {} --threads {} --seconds {}", measurement.line,
                                    device.name, options.threads, options.seconds);
  TRIREME_CHECK(check(problem, device, options.threads, measurement));
  if (measurement.difference) return measurement;
  TRIREME_CHECK(judge(problem, measurement));
  TRIREME_TRY(prepared, load_problem(problem));
  measurement.bytes = bytes_moved(prepared);
  double elements = static_cast<double>(problem.rows() * problem.columns());
  if (measurement.bytes > 0)
    measurement.instructions_per_byte =
        instructions_per_element(prepared.program, device) * elements / static_cast<double>(measurement.bytes);
  if (!prepared.operands().empty()) measurement.element_bytes = bytes(prepared.operands()[0].type);
  auto start = std::chrono::steady_clock::now();
  TRIREME_TRY(executable, device.compile(prepared.program, facts_of(prepared.program, prepared.view())));
  measurement.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  measurement.how = executable->describe();
  TRIREME_TRY(placed, executable->place(prepared.view()));
  TRIREME_TRY(timing, executable->time(placed, {.threads = options.threads,
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
