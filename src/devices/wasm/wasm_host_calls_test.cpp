// Calls of kernel modules: versions and directions, time, forks. Fault numbers are those of the list of faults.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "devices/wasm/doubler_for_test.hpp"

namespace trireme {
namespace {

using namespace doubler;

// A module that does not know what it is given would read nothing of it, and say that all is well.
TEST(WasmHostCalls, fault_35_VersionsAndDirections) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  EXPECT_SAYS(load_and_run(module_of({.version = {9, 0, 0}})),
              "Unsupported: doubler is of version 9.0.0 of the kernel ABI; 1.x is known");
  EXPECT_SAYS(load_and_run(module_of({.version = {0, 9, 0}})), "Unsupported: ");
  EXPECT_EQ(said(load_and_run(module_of({.version = {1, 0, 0}}))), "ok");

  Call call;
  call.params.resize(40);
  WasmKernelCall with_region = call.view();
  with_region.regions = {{.params_at = 16, .input = call.a}};
  WasmKernel old = host()->load(module_of({.version = {1, 0, 7}})).value();
  EXPECT_SAYS(old.forward(with_region),
              "Unsupported: regions in params need version 1.1 of the kernel ABI; doubler is of 1.0.7");
  EXPECT_SAYS(old.backward(with_region), "Unsupported: regions in params");
  EXPECT_EQ(call.output[0], std::byte{0xa5});
  EXPECT_EQ(said(old.forward(call.view())), "ok");
  EXPECT_EQ(said(host()->load(module_of({.version = {1, 1, 0}})).value().forward(with_region)), "ok");

  WasmKernel forward_only = host()->load(module_of({.supports_backward = false})).value();
  EXPECT_SAYS(forward_only.backward(call.view()),
              "Unsupported: doubler has no backward (kernel_info: supports_backward)");
  EXPECT_EQ(said(forward_only.forward(call.view())), "ok");
}

// Init, entry and cleanup have one time limit together, however it is shared out.
TEST(WasmHostCalls, fault_37_OneLimitForACall) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const Write count = [](Function& f, Local<I32>) {
    const auto k = f.local<I32>("k");
    f.i32_const(100'000'000), f.set(k);
    const Label again = f.loop();
    f.get(k), f.i32_const(1), f.op("i32.sub"), f.tee(k), f.br_if(again);
    f.end(again), leave(f, 0);
  };
  const Bytes module = module_of({.forward = count, .init = count, .cleanup = count});
  WasmKernel patient = host()->load(module, {.seconds = 100}).value();
  double shortest = 100;
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(said(patient.forward({})), "ok");
    shortest = std::min(shortest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  WasmKernel hasty = host()->load(module, {.seconds = shortest / 2}).value();  // each of the three takes a third
  EXPECT_SAYS(hasty.forward({}), "was stopped after");
  EXPECT_SAYS(hasty.forward({}), "was stopped after");  // and the next call again has as much
}

// One thread watches over all calls.
TEST(WasmHostCalls, fault_37_OneWatchdog) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const Bytes endless = module_of({.forward = spin});
  EXPECT_SAYS(load_and_run(endless, {.seconds = 0.01}), "was stopped after 0.01 seconds");
  const auto before = threads();
  std::vector<WasmKernel> kernels;
  for (int k = 0; k < 8; ++k) kernels.push_back(host()->load(endless, {.seconds = 0.3 - 0.03 * k}).value());
  std::vector<std::thread> callers;
  std::atomic<int> stopped = 0;
  for (WasmKernel& kernel : kernels)
    callers.emplace_back([&] {
      for (int round = 0; round < 2; ++round) stopped += !kernel.forward({});
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // all of them are called now
  EXPECT_LE(threads(), before + 8);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(stopped, 16);
  EXPECT_EQ(threads(), before);
}

#if !defined(__SANITIZE_THREAD__)  // which allows no threads after a fork
// Whatever other threads do at the moment: the child compiles, runs, and stops what does not end.
TEST(WasmHostCalls, fault_38_WorksInAForkedChild) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const Write trap = [](Function& f, Local<I32>) { f.op("unreachable"); };
  const Bytes good = module_of(), endless = module_of({.forward = spin}), trapping = module_of({.forward = trap});
  WasmKernel from_parent = host()->load(good).value();
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      while (!done) static_cast<void>(t == 2 ? load_and_run(trapping) : load_and_run(good));
    });
  for (int round = 0; round < 40; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // a hang becomes a failure
      Call call;
      const bool fine = from_parent.forward(call.view()) && load_and_run(good) && WasmHost::open() &&
                        said(load_and_run(endless, {.seconds = 0.01})).find("was stopped") != std::string::npos;
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
