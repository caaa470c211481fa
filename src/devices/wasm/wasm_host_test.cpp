// The host against modules that behave, and against modules that do not. Fault numbers are those of the list of faults.
#include "trireme/wasm_host.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <fstream>
#include <thread>

#include "devices/wasm/doubler_for_test.hpp"
#include "support/environment_for_test.hpp"

namespace trireme {
namespace {

using namespace doubler;

TEST(WasmHost, RunsAModule) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  EXPECT_GE(host()->version(), 25);
  WasmKernel kernel = host()->load(module_of()).value();
  EXPECT_EQ(kernel.info().name, "doubler");
  EXPECT_EQ(kernel.info().version, (std::array{1, 2, 3}));
  EXPECT_TRUE(kernel.info().supports_backward);
  for (int round = 1; round <= 3; ++round) {
    Call call;
    ASSERT_EQ(said(kernel.forward(call.view())), "ok");
    EXPECT_EQ(call.output, (std::vector{std::byte{2}, std::byte{4}, std::byte{6}}));
    EXPECT_EQ(call.scratch[0], std::byte(round));
  }
}

// Fault 1 and its kin: nothing to do, and arrays without bytes.
TEST(WasmHost, fault_01_EmptyArrays) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  WasmKernel kernel = host()->load(module_of()).value();
  EXPECT_EQ(said(kernel.forward({})), "ok");
  EXPECT_EQ(said(kernel.backward({})), "ok");
}

TEST(WasmHost, fault_45_AKernelThatWasMovedAway) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  WasmKernel kernel = host()->load(module_of()).value(), moved = std::move(kernel);
  EXPECT_EQ(kernel.info().name, "");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(said(kernel.forward({})), "InvalidArgument: the kernel was moved away");
  EXPECT_EQ(said(moved.backward({})), "ok");
}

// A module that does not say where its data end keeps its whole first memory to itself.
TEST(WasmHost, ArraysLieBehindTheModulesData) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const auto address_of_a = [](std::optional<std::int32_t> heap_base) {
    const Write tell = [](Function& f, Local<I32> descriptor) {  // the address, in output
      f.get(descriptor), f.memory("i32.load", {.offset = 16});
      f.get(descriptor), f.memory("i32.load"), f.memory("i32.store"), leave(f, 0);
    };
    WasmKernel kernel = host()->load(module_of({.forward = tell, .heap_base = heap_base})).value();
    std::uint32_t address = 0;
    const std::byte one{1};
    kernel.forward({.a = {&one, 1}, .output = std::as_writable_bytes(std::span(&address, 1))}).value();
    return address;
  };
  EXPECT_GE(address_of_a(std::nullopt), 65536u);
  EXPECT_GE(address_of_a(5000), 5000u);
  EXPECT_LT(address_of_a(5000), 65536u);
  EXPECT_GT(address_of_a(0), 0u);
}

struct Fault {
  const char* name;
  Bytes module;
  const char* said;
  WasmLimits limits = {};
};

std::vector<Fault> faults() {
  const WasmLimits hasty{.seconds = 0.02}, small{.memory_bytes = 1 << 20};
  const auto with_forward = [](const Write& write) { return module_of({.forward = write}); };
  const auto beyond = with_forward([](Function& f, Local<I32>) { f.i32_const(-4), f.memory("i32.load"); });
  const auto write_beyond = with_forward([](Function& f, Local<I32>) {
    f.i32_const(-64), f.splat_const(1.0f), f.memory("v128.store", {.offset = 0xfffffff0}), leave(f, 0);
  });
  // Doubles its memory until it gets no more, and then tells.
  const auto grow = with_forward([](Function& f, Local<I32>) {
    const Label again = f.loop();
    f.op("memory.size"), f.op("memory.grow"), f.i32_const(-1), f.op("i32.ne"), f.br_if(again);
    f.end(again), leave(f, 4);
  });
  const auto code = [&](int value) { return with_forward([=](Function& f, Local<I32>) { leave(f, value); }); };
  Bytes garbage(1000);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : garbage) byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  Bytes headed = garbage, cut = module_of();
  std::ranges::copy(Bytes{0, 'a', 's', 'm', 1, 0, 0, 0}, headed.begin());
  cut.resize(cut.size() / 2);
  const Bytes importing = {0, 'a', 's', 'm', 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 2, 9, 1, 3, 'e', 'n', 'v', 1, 'f', 0, 0};
  // func f, which calls itself, as the start function.
  const Bytes recursive = {0, 'a', 's', 'm', 1, 0, 0,  0, 1, 4, 1, 0x60, 0, 0,   3,
                           2, 1,   0,   8,   1, 0, 10, 6, 1, 4, 0, 0x10, 0, 0x0b};
  const auto name_at = [](std::int32_t at, std::int32_t length) {
    return module_of({.info = [=](Function& f, Local<I32> info) {
      f.get(info), f.i32_const(at), f.memory("i32.store");
      f.get(info), f.i32_const(length), f.memory("i32.store", {.offset = 4}), leave(f, 0);
    }});
  };
  return {
      {"reads beyond memory", beyond, "InvalidProgram: kernel_forward trapped: out of bounds memory access"},
      {"writes beyond memory", write_beyond, "out of bounds memory access"},
      {"endless loop", with_forward(spin), "InvalidProgram: kernel_forward was stopped after 0.02 seconds", hasty},
      {"endless in info", module_of({.info = spin}), "kernel_info was stopped after 0.02 seconds", hasty},
      {"unreachable", with_forward([](Function& f, Local<I32>) { f.op("unreachable"); }),
       "kernel_forward trapped: wasm `unreachable` instruction executed"},
      {"division", with_forward([](Function& f, Local<I32>) { f.i32_const(1), f.i32_const(0), f.op("i32.div_u"); }),
       "integer divide by zero"},
      {"grows", grow, "OutOfMemory: kernel_forward returned 4: out of memory", small},
      {"starts too large", module_of({.memory = {.min_pages = 17}}), "making an instance", small},
      {"heap base beyond", module_of({.heap_base = -16}), "OutOfMemory: ", small},
      {"code 1", code(1), "InvalidArgument: kernel_forward returned 1: invalid input"},
      {"code 2", code(2), "InvalidArgument: kernel_forward returned 2: invalid output"},
      {"code 3", code(3), "InvalidArgument: kernel_forward returned 3: invalid params"},
      {"code 5", code(5), "Unsupported: kernel_forward returned 5: not implemented"},
      {"code -7", code(-7), "InvalidProgram: kernel_forward returned -7: no code of the kernel ABI"},
      {"name beyond", name_at(-8, 20), "kernel_info: a name of 20 bytes"},
      {"name too long", name_at(0, 60000), "kernel_info: a name of 60000 bytes"},
      {"imports", importing, "InvalidProgram: the module imports env.f"},
      {"recursion", recursive, "making an instance trapped: it needs more than the 524288 bytes of stack"},
      {"no bytes", {}, "InvalidProgram: not a valid WebAssembly module"},
      {"garbage", garbage, "not a valid WebAssembly module"},
      {"garbage behind a head", headed, "not a valid WebAssembly module"},
      {"cut in half", cut, "not a valid WebAssembly module"},
      {"too long", Bytes(1001), "the module has 1001 bytes; the limit is 1000", {.module_bytes = 1000}},
  };
}

TEST(WasmHost, fault_28_BadModulesAreErrors) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  for (const Fault& fault : faults()) {
    SCOPED_TRACE(fault.name);
    EXPECT_SAYS(load_and_run(fault.module, fault.limits), fault.said);
  }
  for (const char* entry : {"kernel_init", "kernel_forward", "kernel_backward", "kernel_info", "kernel_cleanup"}) {
    EXPECT_SAYS(load_and_run(module_of({.left_out = entry})),
                std::string("InvalidProgram: the module exports no function ") + entry);
    if (std::string(entry) == "kernel_cleanup") continue;  // it has no parameter to lose
    EXPECT_SAYS(load_and_run(module_of({.misshapen = entry})), std::string(entry) + " has the signature >i; expected");
  }
  EXPECT_SAYS(load_and_run(module_of({.memory = {.export_name = "other"}})), "exports no memory");
}

std::int64_t resident_bytes() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// LONG=1: a thousand rounds. Bounded memory: what the first quarter takes is not taken again by the rest.
TEST(WasmHost, fault_28_SurvivesBadModulesAThousandTimes) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const int rounds = std::getenv("LONG") ? 1000 : 12;
  const std::vector<Fault> all = faults();
  WasmKernel steady = host()->load(module_of()).value();
  std::int64_t after_some = 0;
  for (int round = 0; round < rounds; ++round) {
    for (const Fault& fault : all) {
      WasmLimits limits = fault.limits;
      limits.seconds = std::min(limits.seconds, 0.002);  // most of the time is waited here
      const Status status = load_and_run(fault.module, limits);
      ASSERT_FALSE(status) << fault.name;
    }
    Call call;
    ASSERT_EQ(said(steady.forward(call.view())), "ok");
    ASSERT_EQ(call.output[2], std::byte{6});
    if (round == rounds / 4) after_some = resident_bytes();
  }
  EXPECT_LT(resident_bytes() - after_some, 32 << 20);
}

// Nothing is written, and the same kernel goes on, from a fresh start.
TEST(WasmHost, ATrapLeavesNothingBehind) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const Write once = [](Function& f, Local<I32> descriptor) {  // writes its output, then traps if a's first byte is 1
    f.get(descriptor), f.memory("i32.load", {.offset = 16}), f.i32_const(77), f.memory("i32.store8");
    f.get(descriptor), f.memory("i32.load"), f.memory("i32.load8_u"), f.i32_const(1), f.op("i32.eq");
    const Label trap = f.if_();
    f.op("unreachable"), f.end(trap), leave(f, 0);
  };
  WasmKernel kernel = host()->load(module_of({.forward = once})).value();
  Call bad, good;
  good.a[0] = std::byte{2};
  EXPECT_SAYS(kernel.forward(bad.view()), "unreachable");
  EXPECT_EQ(bad.output[0], std::byte{0xa5});
  EXPECT_EQ(said(kernel.forward(good.view())), "ok");
  EXPECT_EQ(good.output[0], std::byte{77});
}

TEST(WasmHost, fault_28_ArraysBeyondTheLimit) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  WasmKernel kernel = host()->load(module_of(), {.memory_bytes = 1 << 20}).value();
  std::vector<std::byte> large(2 << 20), huge_params(8);
  EXPECT_SAYS(kernel.forward({.a = large}), "OutOfMemory: ");
  EXPECT_SAYS(kernel.forward({.a = {large.data(), std::size_t{1} << 40}}), "OutOfMemory: ");
  EXPECT_SAYS(kernel.forward({.params = huge_params, .regions = {{.params_at = 4}}}), "no room for a region at byte 4");
  Call call;
  EXPECT_EQ(said(kernel.forward(call.view())), "ok");
}

// A region that starts beyond 2 GiB is as good as another.
TEST(WasmHost, fault_28_OffsetsBeyond2GiB) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const std::int32_t base = std::bit_cast<std::int32_t>(0xa0000000u);
  WasmKernel kernel = host()->load(module_of({.heap_base = base}), {.memory_bytes = std::int64_t{3} << 30}).value();
  Call call;
  ASSERT_EQ(said(kernel.forward(call.view())), "ok");
  EXPECT_EQ(call.output[2], std::byte{6});
}

TEST(WasmHost, ThreadsHaveModulesOfTheirOwn) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const Bytes good = module_of(), endless = module_of({.forward = spin});
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      if (t == 0) {
        right += !load_and_run(endless, {.seconds = 0.05});
        return;
      }
      WasmKernel kernel = host()->load(good).value();
      for (int k = 0; k < 20; ++k) {
        Call call;
        right += kernel.forward(call.view()).has_value() && call.output[1] == std::byte{4};
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 61);
}

TEST(WasmHost, SaysWhatIsMissing) {
  EXPECT_SAYS(WasmHost::open("/nowhere/libwasmtime.so").error(), "NoDevice: wasmtime's library is missing");
  EXPECT_SAYS(WasmHost::open("/nowhere/libwasmtime.so").error(), "pip install wasmtime");
  EXPECT_SAYS(WasmHost::open("libm.so.6").error(), "Unsupported: libm.so.6 has no wasm_config_new");
  Environment named("TRIREME_WASMTIME", "/nowhere/else.so");
  EXPECT_SAYS(WasmHost::open().error(), "/nowhere/else.so");
}

TEST(WasmHost, LimitsAreChecked) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  EXPECT_SAYS(load_and_run(module_of(), {.memory_bytes = 100}), "memory_bytes is 100; 65536 to 4294967296 go");
  EXPECT_SAYS(load_and_run(module_of(), {.stack_bytes = 8 << 20}), "stack_bytes is 8388608");
  EXPECT_SAYS(load_and_run(module_of(), {.seconds = 0}), "seconds is 0");
}

}  // namespace
}  // namespace trireme
