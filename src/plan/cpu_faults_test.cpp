// Faults of others on the CPU's targets: awkward shapes, places and values between guard pages; threads, forks and the
// caller's floating-point state through plans.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "plan/check.hpp"
#include "plan/devices_for_test.hpp"
#include "plan/guarded_for_test.hpp"
#include "support/floating_point_states_for_test.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

GuardedProblem guarded(Prepared prepared) {
  GuardedProblem problem(prepared.program, prepared.problem.rows(), prepared.problem.columns(), prepared.constants,
                         std::move(prepared.buffers));
  problem.run_reference().value();
  return problem;
}

void expect_same_bits(const GuardedProblem& problem, const std::string& line, const RunOptions& options = {}) {
  for (const DeviceEntry* device : cpus()) {
    for (Guarded::Edge edge : {Guarded::Edge::Begin, Guarded::Edge::End})
      EXPECT_EQ(problem.compare(*device, options, edge), "")
          << device->name << ", " << options.threads << " threads, chunks of " << options.chunk_rows
          << "   rerun: trireme verify \"" << line << '"';
  }
}

void expect_same_bits(const std::string& line, const RunOptions& options = {}) {
  expect_same_bits(guarded(prepare_problem(parse_problem(line).value()).value()), line, options);
}

const char* const programs[] = {"rms_norm", "softmax", "layer_norm"};

TEST(CpuFaults, fault_01_ZeroRows) {
  for (const char* program : programs)
    for (const char* direction : {"", " backward"})
      for (const char* columns : {"7", "257", "4097"})
        expect_same_bits(fmt::format("{} 0x{} x=bf16{}", program, columns, direction), {.threads = 3});
}

TEST(CpuFaults, fault_02_AwkwardColumns) {
  for (const char* program : programs)
    for (const char* direction : {"", " backward"})
      for (const char* type : {"f32", "bf16", "f8e4m3"})
        for (int columns : {1, 2, 3, 31, 33, 541, 65537})
          expect_same_bits(fmt::format("{} 2x{} x={}{}", program, columns, type, direction));
}

// Each array in turn begins one element later than its neighbours.
TEST(CpuFaults, fault_06_EachPointerInTurnOffByOneElement) {
  for (const char* line : {"rms_norm 3x300 x=f32 gamma=bf16", "rms_norm 3x1000 x=bf16 gamma=f32 backward",
                           "add_rms_norm 3x520 x=f16", "swiglu 3x64 x=f64", "layer_norm 3x77 x=f8e4m3 backward"}) {
    Problem problem = parse_problem(line).value();
    Prepared names = prepare_problem(problem, {}, Fill::Nothing).value();
    auto off_by_one = [&](const std::string& name) {
      Problem moved = problem;
      moved.placements[name].offset = 1;
      expect_same_bits(print(moved));
    };
    for (const Operand& operand : names.program.operands)
      if (!operand.constant) off_by_one(operand.name);
    for (const Output& result : names.program.results) off_by_one(result.name);
  }
}

TEST(CpuFaults, fault_07_RowStridesOfNoVectorsWidth) {
  for (const char* type : {"f32", "bf16", "f64", "i8"})
    for (int more : {1, 3, 7, 9})
      for (int columns : {64, 257, 1000}) {
        std::string x = fmt::format("{}:{}", type, columns + more),
                    y = fmt::format("{}:{}", type, columns + 2 * more - 1);
        expect_same_bits(fmt::format("layer_norm 5x{} x={} y={}", columns, x, y));
        expect_same_bits(fmt::format("layer_norm 5x{} x={} dy={} dx={} backward", columns, x, y, y));
      }
}

// In a vector, a tail, a row of its own; where a row is unrolled and where it is not.
TEST(CpuFaults, fault_13_NanAndInfinitiesAtEachPosition) {
  for (const char* line : {"softmax 2x37", "rms_norm 2x37", "layer_norm 2x37 backward", "add_rms_norm_quant 2x37",
                           "softmax 2x600 backward", "rms_norm 2x600"})
    for (float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity()}) {
      const std::int64_t columns = parse_problem(line).value().columns();
      for (std::int64_t at = 0; at<columns; at += columns> 64 ? 31 : 1) {
        Prepared prepared = prepare_problem(parse_problem(line).value()).value();
        Buffer& first = prepared.buffers.operands[0];
        std::memcpy(first.array.entry(1, at), &value, sizeof value);
        SCOPED_TRACE(fmt::format("{} at column {}", value, at));
        expect_same_bits(guarded(std::move(prepared)), line);
      }
    }
}

TEST(CpuFaults, EveryNumberOfThreadsAndAnyChunks) {
  for (const char* line : {"layer_norm 131x70 x=bf16 backward", "rms_norm 131x300",
                           "softmax 70x33 x=f32:1,70 y=f32:1,70", "rms_norm 9x15x130 x=f32:6000,130 backward",
                           "layer_norm 300x40 x=bf16:1,300 dy=f32:1,300 dx=f16:1,300 backward"}) {
    GuardedProblem problem = guarded(prepare_problem(parse_problem(line).value()).value());
    for (int threads = 1; threads <= 64; ++threads)
      expect_same_bits(problem, line, {.threads = threads, .chunk_rows = threads * 7 % 11});
    for (std::int64_t chunk : {1, 2, 64, 130, 131, 132, 100000}) expect_same_bits(problem, line, {.chunk_rows = chunk});
  }
}

// What the workspace's size says is enough for any strides: rows that share lines, in row blocks that cut the lines (7
// and 3 rows) and that do not; rows so long that one line of every column is copied at a time, by all threads together.
TEST(CpuFaults, CopiesStayInTheirWorkspace) {
  for (const char* line :
       {"rms_norm 800x24 x=f32:1,800 dy=f32:1,800 dx=f32:1,800 backward",
        "rms_norm 800x24 x=bf16:1,800 dy=f32:1,800 dx=f32:-24 backward", "softmax 100x50 x=i8:1,100 y=f64:1,100",
        "softmax 64x300 x=f32:300,-1 y=f32:600,2", "rms_norm 70x66000 x=f16:1,70 dy=f16:1,70 dx=f16:1,70 backward",
        "softmax 33x66001 x=f32:1,33", "layer_norm 20x300x220 axes=2 x=f32:1,4420,20 dy=f16:1,4420,20 backward"})
    for (const DeviceEntry* device : cpus()) {
      Prepared prepared = prepare_problem(parse_problem(line).value()).value();
      auto run = [&](const DeviceEntry& device, const RunOptions& options) {
        poison_results(prepared);
        auto executable = device.compile(prepared.program, facts_of(prepared.program, prepared.view())).value();
        if (!executable->direct()) return executable->run(prepared.view(), options).value(), digest_of(prepared);
        auto bytes = executable->direct()->memory_bytes(prepared.problem.rows(), prepared.problem.columns(), options);
        Guarded workspace(static_cast<std::size_t>(whole_lines(bytes.workspace)), Guarded::Edge::End);
        Guarded own(static_cast<std::size_t>(whole_lines(bytes.own)), Guarded::Edge::End);
        auto at = [](Guarded& memory) { return reinterpret_cast<std::byte*>(memory.data()); };
        executable->direct()->run_in(prepared.view(), options, {.workspace = at(workspace), .own = at(own)}).value();
        return digest_of(prepared);
      };
      const std::string wanted = run(devices()[0], {});
      for (int threads : {1, 2, 3, 8})
        for (std::int64_t chunk : {0, 7})
          EXPECT_EQ(run(*device, {.threads = threads, .chunk_rows = chunk}), wanted)
              << device->name << ", " << threads << " threads, chunks of " << chunk << "   rerun: trireme verify \""
              << line << '"';
    }
}

TEST(CpuFaults, CopiesOfAnyRowsAreBounded) {
  if (cpus().empty()) GTEST_SKIP() << no_cpu();
  Prepared prepared = prepare_problem(parse_problem("softmax 40x50 x=f32:1,40 y=f16:1,40").value()).value();
  auto executable = cpus().back()->compile(prepared.program, facts_of(prepared.program, prepared.view())).value();
  for (std::int64_t columns = 1; columns < 1 << 23; columns = columns * 3 + 1)
    for (std::int64_t chunk : {0, 1, 17})
      EXPECT_LE(executable->direct()->memory_bytes(4096, columns, {.chunk_rows = chunk}).workspace, 64 << 20)
          << columns;
}

using Floats = std::vector<float>;

// rms_norm's backward with inputs and an eps that round differently in every direction, subnormal values among them.
struct Backward {
  static constexpr std::int64_t rows = 64, columns = 300;
  Plan plan;
  Floats x = Floats(rows * columns), dy = x, gamma = Floats(columns), dx = x, dgamma = gamma;
  Workspace workspace;

  explicit Backward(int threads, ParallelFor parallel_for = {}, std::int64_t wanted_rows = rows)
      : plan(Plan::create(Device::cpu().value(),
                          {.program = RowProgram::named("rms_norm").value().differentiate().value(),
                           .shape = {wanted_rows, columns},
                           .constants = {{"eps", 0.1}},
                           .absent = {"rstd"},
                           .threads = threads,
                           .parallel_for = parallel_for})
                 .value()),
        workspace(plan.workspace_bytes()) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      x[k] = static_cast<float>((k * 7919) % 1000) / 250 - 2;
      dy[k] = static_cast<float>((k * 104729) % 1000) * (k % 5 ? 1e-3f : 1e-42f);
    }
    for (std::size_t k = 0; k < gamma.size(); ++k) gamma[k] = static_cast<float>(k % 7) / 3;
  }

  void run() {
    Args args = plan.args();
    args["x"] = View{x.data()}, args["dy"] = View{dy.data()}, args["gamma"] = View{gamma.data()};
    args["dx"] = View{dx.data()}, args["dgamma"] = View{dgamma.data()};
    plan.run(args, {}, workspace.span()).value();
  }
  bool same_as(const Backward& other) const {
    return std::memcmp(dx.data(), other.dx.data(), dx.size() * 4) == 0 &&
           std::memcmp(dgamma.data(), other.dgamma.data(), dgamma.size() * 4) == 0;
  }
};

// Threads that are made while a state is set inherit it.
TEST(CpuFaults, fault_27_CallersFloatingPointStateThroughPlans) {
  const FloatingPointState before = floating_point_state();
  Backward wanted(1);
  wanted.run();
  for (FloatingPointState state : floating_point_states())
    for (int threads : {1, 2, 5}) {
      Backward plan(threads);
      set_floating_point_state(state);
      plan.run();
      const FloatingPointState after = floating_point_state();
      set_floating_point_state(before);
      EXPECT_EQ(after, state) << std::hex << state;
      EXPECT_TRUE(plan.same_as(wanted)) << std::hex << "state " << state << ", " << threads << " threads";
    }
}

// The host's own threads, with a state of their own.
TEST(CpuFaults, fault_27_FloatingPointStateOfTheHostsThreads) {
  Backward wanted(1);
  wanted.run();
  static std::atomic<int> changed = 0;
  auto on_threads = [](void*, int count, ParallelFor::Body* body, void* context) {
    std::vector<std::thread> threads;
    for (int k = 0; k < count; ++k)
      threads.emplace_back([=] {
        set_floating_point_state(careless_state);
        body(context, k);
        changed += (floating_point_state() & ~sticky_bits) != careless_state;
      });
    for (std::thread& thread : threads) thread.join();
  };
  Backward plan(4, {.run = on_threads});
  plan.run();
  EXPECT_TRUE(plan.same_as(wanted));
  EXPECT_EQ(changed, 0);
}

TEST(CpuFaults, OneRowIsNotHandedOver) {
  if (cpus().empty()) GTEST_SKIP() << no_cpu();
  static std::atomic<int> calls = 0;
  auto counting = [](void*, int count, ParallelFor::Body* body, void* context) {
    ++calls;
    for (int k = 0; k < count; ++k) body(context, k);
  };
  PlanOptions options{.program = RowProgram::named("softmax").value(), .shape = {1, 5000}, .threads = 8};
  options.parallel_for.run = counting;
  for (std::int64_t rows : {1, 2}) {
    options.shape = {rows, 5000};
    Plan plan = Plan::create(Device::cpu().value(), options).value();
    Floats x(rows * 5000, 1.0f), y(x.size());
    Args args = plan.args();
    args["x"] = View{x.data()}, args["y"] = View{y.data()};
    plan.run(args).value();
    EXPECT_EQ(calls, rows - 1);
  }
}

#if !defined(__SANITIZE_THREAD__)  // which allows no threads after a fork
TEST(CpuFaults, fault_22_PlansRunInAForkedChild) {
  Backward wanted(3);
  wanted.run();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang becomes a failure
    Backward made(5);
    made.run();
    Floats dx = wanted.dx;
    std::fill(wanted.dx.begin(), wanted.dx.end(), 0.0f);
    wanted.run();  // made before the fork
    _exit(made.same_as(wanted) && dx == wanted.dx ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Whatever lock other threads hold at the moment, making plans, the child does not wait for it.
TEST(CpuFaults, fault_38_PlansAreMadeInAForkedChild) {
  const auto make = [](std::int64_t columns) {  // short rows: each number of columns has code of its own
    PlanOptions options{.program = RowProgram::named("rms_norm").value(), .shape = {3, columns}, .threads = 1};
    return Plan::create(Device::cpu().value(), options).has_value();
  };
  const auto call = [](std::int64_t columns) {
    Floats x(columns, 1.0f), y(columns);
    return trireme::run("rms_norm", {{"x", View{x.data(), Type::F32, {1, columns}}},
                                     {"y", View{y.data(), Type::F32, {1, columns}}}})
        .has_value();
  };
  ASSERT_TRUE(make(300) && call(300));
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t k = t; !done; k += 4) t % 2 ? call(1 + k % 200) : make(1 + k % 200);
    });
  for (int round = 0; round < 200; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // a hang becomes a failure
      bool fine = true;
      for (std::int64_t columns = 1; columns <= 8; ++columns) fine = fine && make(200 + columns) && call(columns);
      _exit(fine ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round << ": " << status;
    if (HasFailure()) break;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}
#endif

}  // namespace
}  // namespace trireme
