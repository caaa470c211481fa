// What a caller prefers is honoured or refused: instruction sets, configs, workspace; and what serves where nothing
// goes.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>

#include "devices/cpu/deny_for_test.hpp"
#include "plan/devices.hpp"
#include "support/environment_for_test.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

PlanOptions rms_norm_plan(std::int64_t rows, std::int64_t columns) {
  return {.program = RowProgram::named("rms_norm").value(), .shape = {rows, columns}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Preferences, TheIsaAndWhy) {
  Device widest = Device::cpu().value();
  EXPECT_TRUE(has(widest.why(), widest.name() == "reference" ? "nothing faster goes here" : "widest")) << widest.why();
  {
    Environment isa("TRIREME_ISA", "avx2");
    Result<Device> asked = Device::cpu();
    if (!asked) GTEST_SKIP() << asked.error().message;
    EXPECT_EQ(asked->name(), "cpu:avx2");
    Plan plan = Plan::create(*asked, rms_norm_plan(4, 1000)).value();
    EXPECT_TRUE(has(plan.describe(), "cpu:avx2 (TRIREME_ISA=avx2 says so): AVX2")) << plan.describe();
    EXPECT_EQ(plan.sku().isa, "avx2");
    EXPECT_EQ(plan.sku().arch, "x86-64");
  }
  Environment isa("TRIREME_ISA", "sse9");
  Result<Device> none = Device::cpu();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::InvalidArgument);
  EXPECT_TRUE(none.error().message.starts_with("TRIREME_ISA is avx512, avx2")) << none.error().message;
  EXPECT_TRUE(none.error().message.ends_with(", not 'sse9'")) << none.error().message;
  for (const Device::Listed& each : Device::list())
    if (each.name.starts_with("cpu:")) {
      EXPECT_TRUE(has(none.error().message, each.name.substr(4))) << none.error().message;
    }
}

TEST(Preferences, fault_27_OlderProcessorsAreServed) {
  {
    Environment hidden("TRIREME_HIDE", "avx512");
    Device device = Device::cpu().value();
    EXPECT_NE(device.name(), "cpu:avx512");
    EXPECT_TRUE(has(device.why(), "cpu:avx512: TRIREME_HIDE takes away AVX-512")) << device.why();
    for (const Device::Listed& each : Device::list())
      if (each.name == "cpu:avx512") {
        EXPECT_EQ(each.missing, "TRIREME_HIDE takes away AVX-512");
      }
  }
  {
    Environment hidden("TRIREME_HIDE", "avx1024");
    const std::string message = Device::cpu().error().message;
    EXPECT_TRUE(message.starts_with("TRIREME_HIDE is a list of avx2, avx512, avx512_bf16")) << message;
    EXPECT_TRUE(message.ends_with(", not 'avx1024'")) << message;
    EXPECT_EQ(Device::named("cpu:avx2").error().message, Device::cpu().error().message);
  }
  Environment hidden("TRIREME_HIDE", "avx2");
  Device device = Device::cpu().value();
  EXPECT_EQ(device.name(), "reference");
  Plan plan = Plan::create(device, rms_norm_plan(2, 8)).value();
  EXPECT_TRUE(has(plan.describe(), "cpu:avx2: TRIREME_HIDE takes away AVX2")) << plan.describe();
  Result<Device> named = Device::named("cpu:avx2");
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, Code::NoDevice);
}

// Run by the next test in a process that may not make memory executable.
TEST(Preferences, ServedWithoutExecutableMemory) {
  if (!std::getenv("TRIREME_TEST_DENIED")) return;
  Device device = Device::cpu().value();
  EXPECT_EQ(device.name(), "reference");
  const std::string why = find_device("cpu:avx2")->missing();  // instructions are asked for before memory
  EXPECT_TRUE(has(device.why(), "forbids memory of this process to become executable") || has(why, "AVX2")) << why;
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
  run("softmax", {{"x", View{x, Type::F32, {1, 8}}}, {"y", View{y, Type::F32, {1, 8}}}}).value();
  EXPECT_GT(y[7], 0.6f);
}

TEST(Preferences, fault_27_DeniedMemoryIsServedByTheReference) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!deny_executable_memory()) _exit(77);
    setenv("TRIREME_TEST_DENIED", "1", 1);
    execl("/proc/self/exe", "test_plan", "--gtest_filter=Preferences.ServedWithoutExecutableMemory", nullptr);
    _exit(78);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "seccomp is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Preferences, AConfigIsHonouredOrRefused) {
  Device device = Device::cpu().value();
  if (device.name() == "reference") GTEST_SKIP() << device.why();
  PlanOptions options = rms_norm_plan(8, 1000);
  Plan chosen = Plan::create(device, options).value();
  options.config = chosen.sku().config;
  Plan same = Plan::create(device, options).value();
  EXPECT_EQ(same.sku().kernel_hash, chosen.sku().kernel_hash);
  options.config += " streaming";
  Plan other = Plan::create(device, options).value();
  EXPECT_TRUE(has(other.describe(), "streaming")) << other.describe();
  EXPECT_NE(other.sku().kernel_hash, chosen.sku().kernel_hash);
  for (const char* wrong : {"simd lanes=3", "threads lanes=32 columns=1000", "fast please"}) {
    options.config = wrong;
    Result<Plan> refused = Plan::create(device, options);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, Code::InvalidArgument);
    EXPECT_TRUE(has(refused.error().message, "config: ")) << refused.error().message;
  }
}

// Rows, strides and constants are arguments, and the number of columns where rows are not short.
TEST(Preferences, OneKernelServesManyShapes) {
  Device device = Device::cpu().value();
  if (device.name() == "reference") GTEST_SKIP() << device.why();
  std::set<std::string> hashes;
  for (std::int64_t columns : {600, 601, 1000, 4096, 70001})
    for (std::int64_t rows : {0, 1, 7}) {
      PlanOptions options = rms_norm_plan(rows, columns);
      options.constants = {{"eps", 1e-6 + static_cast<double>(columns)}};
      options.strides = {{"x", {columns + rows, 1}}};
      hashes.insert(Plan::create(device, options).value().sku().kernel_hash);
    }
  EXPECT_EQ(hashes.size(), 1u);
}

TEST(Preferences, APerfMapOnRequest) {
  Device device = Device::cpu().value();
  if (device.name() == "reference") GTEST_SKIP() << device.why();
  std::string file = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  {
    Environment perf("TRIREME_PERF", "map");
    Plan::create(device, {.program = RowProgram::named("geglu_erf").value(), .shape = {3, 77}}).value();
  }
  std::ifstream map(file);
  std::string start, size, name;
  ASSERT_TRUE(map >> start >> size >> name) << file;
  EXPECT_EQ(name, "trireme:geglu_erf");
  EXPECT_GT(std::stoull(start, nullptr, 16), 0u);
  EXPECT_GT(std::stoull(size, nullptr, 16), 16u);
  unlink(file.c_str());
}

// The same bits for every number of threads, and with the host's own.
TEST(Preferences, ThreadsDoNotMatter) {
  constexpr std::int64_t rows = 130, columns = 300;
  std::vector<float> x(rows * columns), first;
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>((k * 7919) % 1000) / 250 - 2;
  struct Host {
    int calls = 0;
    static void run(void* host, int count, ParallelFor::Body* body, void* context) {
      ++static_cast<Host*>(host)->calls;
      for (int k = count; k-- > 0;) body(context, k);
    }
  } host;
  for (int threads : {1, 2, 3, 5, 8, 16, 33, 64, -4}) {
    PlanOptions options{.program = RowProgram::named("layer_norm").value().differentiate().value(),
                        .shape = {rows, columns},
                        .absent = {"average", "rstd"},
                        .threads = std::abs(threads)};
    if (threads < 0) options.parallel_for = {&Host::run, &host};
    Plan plan = Plan::create(Device::cpu().value(), options).value();
    Args args = plan.args();
    std::vector<float> dx(x.size()), dgamma(columns), dbeta(columns), gamma(columns, 1.5f);
    args["dy"] = View{x.data()}, args["x"] = View{x.data()}, args["gamma"] = View{gamma.data()};
    args["dx"] = View{dx.data()}, args["dgamma"] = View{dgamma.data()}, args["dbeta"] = View{dbeta.data()};
    Workspace workspace(plan.workspace_bytes());
    plan.run(args, {}, workspace.span()).value();
    dx.insert(dx.end(), dgamma.begin(), dgamma.end());
    dx.insert(dx.end(), dbeta.begin(), dbeta.end());
    if (first.empty()) first = dx;
    EXPECT_EQ(dx, first) << threads << " threads";
  }
  EXPECT_EQ(host.calls > 0, Device::cpu().value().name() != "reference");
}

}  // namespace
}  // namespace trireme
