// On a real GPU: operators x types x shapes x layouts x schedules, bit for bit, on a stream of their own, with spoiled
// results and canaries around every buffer; graphs, threads, streams, forks, and shapes beyond 2^31.
// bench/gpu.sh runs these; elsewhere they are skipped, and say why.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "devices/arguments.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "ir/contract.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/difference.hpp"
#include "plan/ops.hpp"
#include "plan/remarks.hpp"
#include "plan/samples.hpp"
#include "reference/reference.hpp"
#include "support/float_types.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    auto driver = cuda::Driver::instance();
    if (!driver) GTEST_SKIP() << "no GPU: " << driver.error().message;
    auto found = driver.value()->device(0);
    if (!found) GTEST_SKIP() << "no GPU: " << found.error().message;
    device = *found;
  }
  const cuda::Device* device = nullptr;
};

bool long_runs() {
  const char* said = std::getenv("LONG");
  return said && std::string_view(said) == "1";
}

constexpr std::uint8_t canary = 0xC3, poison = 0xA5;
constexpr std::size_t fence_bytes = 4096;

// Device memory between two fences; it begins as far from a multiple of 256 bytes as the host's does.
class Fenced {
 public:
  Fenced(const cuda::Device& device, std::size_t bytes, std::size_t offset = 0)
      : device_(device), bytes_(bytes), offset_(fence_bytes + offset) {
    memory_ = device.allocate(offset_ + bytes + fence_bytes).value();
    device.fill(memory_.get(), canary, offset_ + bytes + fence_bytes).value();
  }
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()) + offset_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> host(bytes_);
    if (bytes_) device_.copy(host.data(), data(), bytes_).value();
    return host;
  }
  bool whole() const {
    std::vector<std::byte> host(offset_ + bytes_ + fence_bytes);
    device_.copy(host.data(), memory_.get(), host.size()).value();
    auto fine = [](std::byte each) { return each == std::byte{canary}; };
    return std::all_of(host.begin(), host.begin() + static_cast<std::ptrdiff_t>(offset_), fine) &&
           std::all_of(host.begin() + static_cast<std::ptrdiff_t>(offset_ + bytes_), host.end(), fine);
  }

 private:
  const cuda::Device& device_;
  std::size_t bytes_, offset_;
  cuda::Memory memory_;
};

// Runs a prepared problem on the GPU as a plan would, and brings its results back into the prepared buffers.
std::string run_fenced(const cuda::Device& device, const DirectExecutable& executable, Prepared& prepared) {
  std::vector<std::unique_ptr<Fenced>> memory;
  std::vector<Array> operands = prepared.operands, results = prepared.results;
  auto bring = [&](Buffer& buffer, Array& array) {
    std::size_t offset = reinterpret_cast<std::uintptr_t>(buffer.memory.data()) % 256;
    memory.push_back(std::make_unique<Fenced>(device, buffer.memory.size(), offset));
    if (!buffer.memory.empty()) device.copy(memory.back()->data(), buffer.memory.data(), buffer.memory.size()).value();
    array.data = memory.back()->data() + (static_cast<std::byte*>(buffer.array.data) - buffer.memory.data());
  };
  for (std::size_t k = 0; k < operands.size(); ++k) bring(prepared.buffers.operands[k], operands[k]);
  for (std::size_t k = 0; k < results.size(); ++k) bring(prepared.buffers.results[k], results[k]);
  Problem2d problem = prepared.view();
  problem.operands = operands, problem.results = results;
  DirectExecutable::MemoryBytes bytes = executable.memory_bytes(problem.rows, problem.columns, {});
  Fenced workspace(device, static_cast<std::size_t>(bytes.workspace));
  std::vector<std::byte, CacheLineAllocator<std::byte>> own(static_cast<std::size_t>(bytes.own));
  cuda::Stream stream = device.stream().value();
  Status done =
      executable.run_in(problem, {}, {.workspace = workspace.data(), .own = own.data(), .stream = stream.get()});
  if (!done) return std::string(name(done.error().code)) + ": " + done.error().message;
  device.synchronize(stream.get()).value();
  std::size_t at = 0;
  for (Buffer& buffer : prepared.buffers.operands) {
    if (!memory[at]->whole()) return "the canary around an operand is gone";
    std::vector<std::byte> now = memory[at++]->read();
    if (std::memcmp(now.data(), buffer.memory.data(), now.size()) != 0) return "an operand was written to";
  }
  for (Buffer& buffer : prepared.buffers.results) {
    if (!memory[at]->whole()) return "the canary around a result is gone";
    std::vector<std::byte> now = memory[at++]->read();
    if (!now.empty()) std::memcpy(buffer.memory.data(), now.data(), now.size());
  }
  return workspace.whole() ? "" : "the canary around the workspace is gone";
}

// Empty, or what is wrong. `make` makes the executable for the prepared problem; Unsupported is no fault.
template <typename Make>
std::string compare(const cuda::Device& device, const std::string& line, std::string_view text, Make&& make) {
  auto prepare = [&] { return prepare_problem(parse_problem(line).value(), text); };
  Result<Prepared> wanted = prepare(), got = prepare();
  if (!wanted) return wanted.error().message;
  Status status = run_reference(wanted->program, wanted->view());
  if (!status) return status.error().message;
  Result<std::unique_ptr<Executable>> executable = make(*got);
  if (!executable) return executable.error().code == Code::Unsupported ? "" : executable.error().message;
  poison_results(*got);
  std::string wrong = run_fenced(device, *(*executable)->direct(), *got);
  if (wrong.empty() && digest_of(*got) != digest_of(*wanted)) wrong = "other bits";
  if (wrong.empty()) return "";
  return fmt::format("{}: {} ({})   rerun: trireme verify \"{}\" --device cuda", line, wrong, (*executable)->describe(),
                     line);
}

Result<std::unique_ptr<Executable>> chosen(const Prepared& prepared) {
  return find_device("cuda")->compile(prepared.program, facts_of(prepared.program, prepared.view()));
}

std::vector<std::string> operator_lines() {
  constexpr const char* types[] = {"f32", "bf16", "f16", "f64", "f8e4m3", "f8e5m2"};
  constexpr const char* layouts[] = {"", "+1", "+3:4500", "+0:4500", "+8:4504"};
  constexpr const char* shapes[] = {"0x33",  "1x1",     "7x2",     "5x31",   "129x33", "9x257",
                                    "3x541", "40x1024", "12x2880", "9x4096", "6x4097"};
  std::vector<std::string> lines;
  std::size_t turn = 0;
  for (const OperatorText& each : operator_texts()) {
    std::vector<std::string> tries = parse_remarks(each.text).value().tries;
    Program program = find_program(each.name).value();
    std::string element;
    for (const Operand& operand : program.operands)
      if (element.empty() && operand.spread.row.present && operand.spread.column.present && operand.spread.plain())
        element = operand.name;
    // Where an operator needs constants, its own lines have them.
    bool needs_constants = false;
    for (const Operand& operand : program.operands) needs_constants |= operand.constant && operand.fallback == no_node;
    for (const char* shape : shapes) {
      if (needs_constants) break;
      std::string layout = layouts[turn % std::size(layouts)];
      tries.push_back(fmt::format("{} {}={}{}", shape, element, types[turn % std::size(types)], layout));
      turn += 1 + static_cast<std::size_t>(turn % 7 == 0);
    }
    for (const std::string& line : tries)
      for (const char* direction : {"", " backward"})
        lines.push_back(fmt::format("{} {}{}", each.name, line, direction));
  }
  return lines;
}

TEST(GpuLines, AreProblems) {
  for (const std::string& line : operator_lines()) {
    Result<Problem> problem = parse_problem(line);
    ASSERT_TRUE(problem) << line << ": " << problem.error().message;
    Result<Prepared> prepared = prepare_problem(*problem);
    EXPECT_TRUE(prepared) << line << ": " << prepared.error().message;
  }
}

TEST_F(OnGpu, OperatorsTypesShapesLayouts) {
  std::vector<std::string> lines = operator_lines();
  for (const std::string& line : lines) EXPECT_EQ(compare(*device, line, {}, chosen), "");
  fmt::print("{} problems\n", lines.size());
}

TEST_F(OnGpu, LongRows) {
  for (const char* line :
       {"rms_norm 3x65537 x=bf16", "rms_norm 3x65537 x=bf16 backward", "layer_norm 17x131072 x=bf16 backward",
        "softmax 5x100001 x=f32", "rms_norm 2x1048576 x=bf16", "rms_norm 2x1048576 x=bf16 backward",
        "dynamic_tanh 3x70000 backward", "rms_norm 70000x8 backward", "dynamic_tanh 40000x3 backward",
        "swiglu 200000x7 x=bf16 backward"})
    EXPECT_EQ(compare(*device, line, {}, chosen), "");
}

// Schedules that the heuristics would not choose, drawn at random.
TEST_F(OnGpu, Schedules) {
  constexpr std::string_view programs[] = {
      "p(x[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], rstd[i])\n"
      "  rstd = rsqrt(mean(x * x) + eps)\n  y = x * rstd * gamma\n",
      "p(x[i,j], gamma[j], beta[j]) -> (y[i,j], mu[i], rstd[i])\n"
      "  mu = mean(x)\n  rstd = rsqrt(mean(square(x - mu)) + 1e-5)\n  y = (x - mu) * rstd * gamma + beta\n",
      "p(x[i,j], scale[] = 1) -> (y[i,j])\n  e = exp((x - amax(x)) * scale)\n  y = e / sum(e)\n",
      "p(x[i,j], gate[i,j]) -> (y[i,j])\n  y = x * silu(gate)\n"};
  std::mt19937 random(3);
  auto one_of = [&](auto... values) {
    std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % sizeof...(values)];
  };
  int compared = 0;
  for (int turn = 0; turn < (long_runs() ? 200 : 30) && !HasFailure(); ++turn) {
    std::int64_t columns = one_of(1, 7, 32, 64, 255, 256, 257, 512, 768, 1000, 1024, 2048, 2049, 4104, 8192, 16384);
    std::string line = fmt::format("p {}x{} x={}{}", columns <= 1024 ? one_of(1, 3, 65, 400) : one_of(1, 3, 20),
                                   columns, one_of("f32", "bf16", "f16", "f64", "f8e4m3"), one_of("", " backward"));
    std::string_view text = programs[random() % std::size(programs)];
    EXPECT_EQ(compare(*device, line, text,
                      [&](const Prepared& got) -> Result<std::unique_ptr<Executable>> {
                        Facts facts = facts_of(got.program, got.view());
                        WithoutSums inner = without_sums(got.program, facts);
                        if (!inner.summed.empty()) return chosen(got);
                        Config config = choose_config(got.program, cuda::machine_of(*device), facts);
                        std::int64_t stripes = contract::stripes(columns);
                        config.vector = std::min(config.vector, one_of(1, 2, 4, 8));
                        config.hoist = one_of(true, false), config.reload = one_of(true, false);
                        config.streaming = one_of(true, false), config.rows = one_of(1, 3, 7);
                        config.cluster = device->facts().clusters && stripes > 1 ? one_of(1, 1, 2, 4) : 1;
                        config.stripes = one_of(1, 2, 4);
                        config.groups = static_cast<int>((stripes + config.stripes * config.cluster - 1) /
                                                         (config.stripes * config.cluster));
                        if (config.cluster > 1)
                          config.groups = static_cast<int>(std::bit_ceil(unsigned(config.groups)));
                        config.ring = one_of(0, 2, 3, 4);
                        if (config.groups > 16 || one_of(0, 0, 0, 1)) {
                          config.stripes = config.ring = 0, config.cluster = 1, config.groups = one_of(1, 4, 8, 32);
                        }
                        config.teams = 1;
                        if (config.stripes && config.groups * config.cluster == 1)  // whole warps
                          config.teams = 32 / config.lanes * one_of(1, 2, 4);
                        if (config.teams == 1 && config.groups == 1) config.lanes = 32;
                        if (config.groups * config.cluster > 1) config.lanes = 32;
                        Result<std::unique_ptr<cuda::CudaExecutable>> made =
                            cuda::CudaExecutable::create(*device, got.program, config);
                        if (!made) return made.error();  // what cannot be lowered is Unsupported, all else a fault
                        // What no launch could hold is no schedule.
                        if ((*made)->loaded().kernels().rows.scratch_bytes > device->facts().shared_bytes_per_block)
                          return Error{Code::Unsupported, "too much shared memory"};
                        if ((*made)->loaded().facts().max_threads < (*made)->loaded().kernels().rows.launch.threads())
                          return Error{Code::Unsupported, "too many threads"};
                        ++compared;
                        return std::unique_ptr<Executable>(std::move(*made));
                      }),
              "");
  }
  fmt::print("{} schedules\n", compared);
}

// PTX for sm_80 runs here too: f8 results without the instructions that sm_89 brought.
TEST_F(OnGpu, StoresF8AsOlderGpusDo) {
  for (const char* type : {"f8e4m3", "f8e5m2"}) {
    std::string line = fmt::format("p 4096x1024 x=f32 y={}", type);
    std::string_view text = "p(x[i,j]) -> (y[i,j])\n  y = x\n";
    Result<Prepared> wanted = prepare_problem(parse_problem(line).value(), text),
                     got = prepare_problem(parse_problem(line).value(), text);
    auto fill = [](Prepared& prepared) {  // every sign, exponent and upper fraction; then what lies just beside them
      for (std::uint32_t k = 0; k < 1u << 22; ++k) {
        std::uint32_t bits = (k >> 2) << 12 | (k & 3 ? 0x7FFu + (k & 3) - 1 : 0);
        std::memcpy(static_cast<float*>(prepared.operands[0].data) + k, &bits, 4);
      }
    };
    fill(*wanted), fill(*got);
    run_reference(wanted->program, wanted->view()).value();
    Config config = choose_config(got->program, cuda::machine_of(*device), facts_of(got->program, got->view()));
    auto made = cuda::CudaExecutable::create(*device, got->program, config, "sm_80");
    ASSERT_TRUE(made) << made.error().message;
    poison_results(*got);
    EXPECT_EQ(run_fenced(*device, **made, *got), "");
    EXPECT_EQ(digest_of(*got), digest_of(*wanted)) << type;
  }
}

// ---- plans ----

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
