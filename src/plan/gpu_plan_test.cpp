// Plans on a real GPU: graphs, threads, streams, forks, and shapes beyond 2^31. bench/gpu.sh runs these.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "plan/on_gpu_for_test.hpp"
#include "problem/samples.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

struct Tensor {
  const cuda::Device& device;
  std::int64_t count;
  cuda::Memory memory;
  Tensor(const cuda::Device& device, std::int64_t count) : device(device), count(count) {
    memory = device.allocate(static_cast<std::size_t>(count) * 4).value();
    device.fill(memory.get(), poison, static_cast<std::size_t>(count) * 4).value();
  }
  Tensor(const cuda::Device& device, const std::vector<float>& values)
      : Tensor(device, static_cast<std::int64_t>(values.size())) {
    write(values);
  }
  void write(const std::vector<float>& values) { device.copy(memory.get(), values.data(), values.size() * 4).value(); }
  std::vector<float> read() const {
    std::vector<float> values(static_cast<std::size_t>(count));
    device.copy(values.data(), memory.get(), values.size() * 4).value();
    return values;
  }
  View view() const { return {memory.get()}; }
};

std::vector<float> sampled(std::int64_t count, const char* name) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>(sample_value(sample_draw(0, name, static_cast<std::int64_t>(k)), Type::F32, {}));
  return values;
}

struct Normalised {
  std::vector<float> y, rstd;
  bool operator==(const Normalised&) const = default;
};
Normalised on_reference(std::vector<float> x, std::vector<float> gamma, std::int64_t rows) {
  auto columns = static_cast<std::int64_t>(gamma.size());
  Normalised out{std::vector<float>(x.size()), std::vector<float>(static_cast<std::size_t>(rows))};
  Plan plan =
      Plan::create(Device::reference(), {.program = RowProgram::named("rms_norm").value(), .shape = {rows, columns}})
          .value();
  Args args = plan.args();
  args["x"] = View{x.data()}, args["gamma"] = View{gamma.data()};
  args["y"] = View{out.y.data()}, args["rstd"] = View{out.rstd.data()};
  plan.run(args).value();
  return out;
}
Plan rms_norm_plan(std::int64_t rows, std::int64_t columns) {
  return Plan::create(Device::cuda().value(),
                      {.program = RowProgram::named("rms_norm").value(), .shape = {rows, columns}})
      .value();
}

TEST_F(OnGpu, fault_25_GraphsAreCapturedAndReplayed) {
  constexpr std::int64_t rows = 100, columns = 1000;
  std::vector<float> gamma = sampled(columns, "gamma"), first = sampled(rows * columns, "x"), second = first;
  std::reverse(second.begin(), second.end());
  Tensor x(*device, rows * columns + 1), g(*device, gamma), y(*device, rows * columns), rstd(*device, rows);
  Plan plan = rms_norm_plan(rows, columns);
  Args args = plan.args();
  args["x"] = x.view(), args["gamma"] = g.view(), args["y"] = y.view(), args["rstd"] = rstd.view();
  cuda::Stream stream = device->stream().value();
  auto run = [&] { return plan.run(args, {stream.get()}); };
  auto replayed = [&](const cuda::Graph& graph, std::size_t offset, const std::vector<float>& values) {
    device->copy(static_cast<float*>(x.memory.get()) + offset, values.data(), values.size() * 4).value();
    device->launch(graph, stream.get()).value();
    device->synchronize(stream.get()).value();
    return Normalised{y.read(), rstd.read()} == on_reference(values, gamma, rows);
  };
  cuda::Graph graph = device->capture(stream.get(), run).value();  // the plan's first run
  EXPECT_TRUE(replayed(graph, 0, first));
  EXPECT_TRUE(replayed(graph, 0, second));

  args["x"] = View{static_cast<float*>(x.memory.get()) + 1};
  Result<cuda::Graph> refused = device->capture(stream.get(), run);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("call prepare() before"), std::string::npos) << refused.error().message;
  plan.prepare().value();
  cuda::Graph other = device->capture(stream.get(), run).value();
  EXPECT_TRUE(replayed(other, 1, second));
}

TEST_F(OnGpu, fault_23_24_AnyThreadAndEveryKindOfStream) {
  constexpr std::int64_t rows = 64, columns = 4096;
  std::vector<float> gamma = sampled(columns, "gamma"), values = sampled(rows * columns, "x");
  Normalised wanted = on_reference(values, gamma, rows);
  Plan plan = rms_norm_plan(rows, columns);
  std::vector<std::thread> threads;
  for (std::uintptr_t t = 0; t < 12; ++t)
    threads.emplace_back([&, t] {
      Tensor x(*device, values), g(*device, gamma), y(*device, rows * columns), rstd(*device, rows);
      cuda::Stream own = device->stream().value();
      void* stream =
          t % 4 == 3 ? static_cast<void*>(own.get()) : reinterpret_cast<void*>(t % 4);  // null, legacy, per-thread
      Args args = plan.args();
      args["x"] = x.view(), args["gamma"] = g.view(), args["y"] = y.view(), args["rstd"] = rstd.view();
      for (int k = 0; k < 50; ++k) plan.run(args, {stream}).value();
      device->synchronize().value();
      EXPECT_TRUE((Normalised{y.read(), rstd.read()} == wanted)) << "stream " << t % 4;
    });
  for (std::thread& each : threads) each.join();
}

TEST_F(OnGpu, fault_22_AForkedChildIsToldWhy) {
  Plan plan = rms_norm_plan(4, 8);
  pid_t child = fork();
  if (child == 0) {
    Status prepared = plan.prepare();
    Result<Workspace> none = plan.make_workspace();
    Args args = plan.args();
    float here = 0;
    for (const char* each : {"x", "gamma", "y", "rstd"}) args[each] = View{&here};
    Status run = plan.run(args);
    _exit(!run && run.error().message.find("forked") != std::string::npos ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(OnGpu, fault_29_MemoryOfTheHostIsRefused) {
  Plan plan = rms_norm_plan(4, 8);
  std::vector<float> x(32), gamma(8), y(32), rstd(4);
  Args args = plan.args();
  args["x"] = View{x.data()}, args["gamma"] = View{gamma.data()}, args["y"] = View{y.data()};
  args["rstd"] = View{rstd.data()};
  Status status = plan.run(args);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("none that CUDA knows"), std::string::npos) << status.error().message;
}

TEST_F(OnGpu, OneCallAndZeroRows) {
  constexpr std::int64_t columns = 300;
  std::vector<float> gamma = sampled(columns, "gamma"), values = sampled(5 * columns, "x");
  Tensor x(*device, values), g(*device, gamma), y(*device, 5 * columns), dgamma(*device, columns);
  auto shaped = [](const Tensor& tensor, Dims shape) {
    View view = tensor.view();
    view.shape = shape;
    return view;
  };
  run("rms_norm", {{"x", shaped(x, {5, columns})}, {"gamma", shaped(g, {columns})}, {"y", shaped(y, {5, columns})}},
      {.device = Device::cuda().value()})
      .value();
  device->synchronize().value();
  EXPECT_EQ(y.read(), on_reference(values, gamma, 5).y);
  RowProgram backward = RowProgram::named("rms_norm").value().differentiate().value();
  Plan plan = Plan::create(Device::cuda().value(), {.program = backward, .shape = {0, columns}}).value();
  Args args = plan.args();
  args["gamma"] = g.view(), args["dgamma"] = dgamma.view();
  plan.run(args, {}, plan.make_workspace().value().span()).value();
  device->synchronize().value();
  for (float each : dgamma.read()) ASSERT_TRUE(each == 0 && !std::signbit(each));
}

// Every row is the same one, by a stride of 0: rows near the ends and near 2^31 and 2^32 elements must be, too.
TEST_F(OnGpu, fault_03_BeyondTwoToTheThirtySecondElements) {
  if (!long_runs()) GTEST_SKIP() << "20 GB of a GPU's memory: with LONG=1";
  constexpr std::int64_t columns = 4096;
  std::vector<float> gamma = sampled(columns, "gamma"), row = sampled(columns, "x");
  Normalised wanted = on_reference(row, gamma, 1);
  for (std::int64_t elements : {std::int64_t{1} << 31, std::int64_t{1} << 32})
    for (std::int64_t more : {-1, 0, 1}) {
      std::int64_t rows = elements / columns + more;
      if (device->facts().memory_bytes < static_cast<std::size_t>(rows * columns * 4) + (std::size_t{2} << 30))
        GTEST_SKIP() << "not enough memory for " << rows << " rows";
      Plan plan = Plan::create(Device::cuda().value(), {.program = RowProgram::named("rms_norm").value(),
                                                        .shape = {rows, columns},
                                                        .strides = {{"x", {0, 1}}}})
                      .value();
      Tensor x(*device, row), g(*device, gamma), y(*device, rows * columns), rstd(*device, rows);
      Args args = plan.args();
      args["x"] = x.view(), args["gamma"] = g.view(), args["y"] = y.view(), args["rstd"] = rstd.view();
      plan.run(args).value();
      device->synchronize().value();
      std::vector<float> got(columns);
      for (std::int64_t r : {std::int64_t{0}, rows / 3, rows - 2, rows - 1, (std::int64_t{1} << 31) / columns - 1,
                             (std::int64_t{1} << 31) / columns}) {
        if (r >= rows) continue;
        device->copy(got.data(), static_cast<float*>(y.memory.get()) + r * columns, columns * 4).value();
        ASSERT_EQ(got, wanted.y) << rows << " rows, row " << r;
      }
      for (float each : rstd.read()) ASSERT_EQ(each, wanted.rstd[0]);
    }
}

TEST_F(OnGpu, fault_05_MoreRowsThanAGridsShortDimensions) {
  for (std::int64_t rows :
       {std::int64_t{65535}, std::int64_t{65536}, std::int64_t{3000001}, (std::int64_t{1} << 31) + 5}) {
    if (rows > 1 << 24 && !long_runs()) GTEST_SKIP() << "9 GB of a GPU's memory: with LONG=1";
    if (device->facts().memory_bytes < static_cast<std::size_t>(rows) * 4 + (std::size_t{2} << 30))
      GTEST_SKIP() << "not enough memory for " << rows << " rows";
    Plan plan = Plan::create(Device::cuda().value(), {.program = RowProgram::named("rms_norm").value(),
                                                      .shape = {rows, 3},
                                                      .absent = {"gamma"},
                                                      .results = {{"rstd"}},
                                                      .strides = {{"x", {0, 1}}}})
                    .value();
    std::vector<float> row = sampled(3, "x");
    Tensor x(*device, row), rstd(*device, rows);
    Args args = plan.args();
    args["x"] = x.view(), args["rstd"] = rstd.view();
    plan.run(args).value();
    device->synchronize().value();
    float wanted = on_reference(row, {1, 1, 1}, 1).rstd[0];
    std::vector<float> part(1 << 20);
    for (std::int64_t at = 0; at < rows; at += std::max<std::int64_t>(1, (rows - 1) / 7)) {
      std::int64_t count = std::min<std::int64_t>(1 << 20, rows - at);
      device->copy(part.data(), static_cast<float*>(rstd.memory.get()) + at, static_cast<std::size_t>(count) * 4)
          .value();
      for (std::int64_t k = 0; k < count; ++k) ASSERT_EQ(part[static_cast<std::size_t>(k)], wanted) << at + k;
    }
  }
}

// Reported, not asserted.
TEST_F(OnGpu, HostTimeOfARun) {
  for (std::int64_t rows : {1, 4096}) {
    constexpr std::int64_t columns = 4096;
    Tensor x(*device, rows * columns), g(*device, columns), y(*device, rows * columns), rstd(*device, rows);
    Plan plan = rms_norm_plan(rows, columns);
    Args args = plan.args();
    args["x"] = x.view(), args["gamma"] = g.view(), args["y"] = y.view(), args["rstd"] = rstd.view();
    cuda::Stream stream = device->stream().value();
    for (bool changed : {false, true}) {
      double best = 1e9;
      for (int turn = 0; turn < 20; ++turn) {
        device->synchronize().value();
        auto start = std::chrono::steady_clock::now();
        for (int k = 0; k < 50; ++k) {
          if (changed) args["x"] = x.view();
          plan.run(args, {stream.get()}).value();
        }
        best = std::min(
            best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 50);
      }
      fmt::print("rms_norm {}x{}: {:.2f} us of host time a run{}\n", rows, columns, best,
                 changed ? ", a view set before each" : "");
    }
  }
}

}  // namespace
}  // namespace trireme
