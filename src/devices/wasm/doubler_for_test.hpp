// For tests of the host: a kernel module that doubles bytes, and variants of it that misbehave.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "targets/wasm/encoder.hpp"
#include "trireme/wasm_host.hpp"

namespace trireme::doubler {

using wasm::Function, wasm::Label, wasm::I32, wasm::Local;
using Bytes = std::vector<std::uint8_t>;

inline const Result<WasmHost>& host() {
  static const Result<WasmHost> opened = WasmHost::open();
  return opened;
}
#define TRIREME_SKIP_WITHOUT_WASMTIME() \
  if (!host()) GTEST_SKIP() << host().error().message

using Write = std::function<void(Function&, Local<I32>)>;

// What a test changes of a module that doubles the bytes of a.
struct Recipe {
  Write forward, init, cleanup;  // each leaves a code
  Write info;                    // likewise
  std::array<int, 3> version = {1, 2, 3};
  bool supports_backward = true;
  std::string left_out;   // an export
  std::string misshapen;  // an entry without its parameter
  wasm::Module::Memory memory = {};
  std::optional<std::int32_t> heap_base = 4096;
};

inline void leave(Function& f, std::int32_t code) { f.i32_const(code); }

// output[k] = 2 * a[k], and the first byte of scratch the number of calls since the module was loaded.
inline void double_bytes(Function& f, Local<I32> descriptor, const wasm::Global& calls) {
  const auto k = f.local<I32>("k");
  const auto field = [&](std::uint32_t at) { f.get(descriptor), f.memory("i32.load", {.offset = at}); };
  const Label done = f.block(), again = f.loop();
  f.get(k), field(4), f.op("i32.ge_u"), f.br_if(done);
  field(16), f.get(k), f.op("i32.add");
  field(0), f.get(k), f.op("i32.add"), f.memory("i32.load8_u"), f.i32_const(1), f.op("i32.shl");
  f.memory("i32.store8");
  f.get(k), f.i32_const(1), f.op("i32.add"), f.set(k), f.br(again);
  f.end(again), f.end(done);
  f.get(calls), f.i32_const(1), f.op("i32.add"), f.set(calls);
  field(24), f.get(calls), f.memory("i32.store8");
  leave(f, 0);
}

inline Bytes module_of(const Recipe& recipe = {}) {
  wasm::Module module(recipe.memory);
  if (recipe.heap_base) module.global({.name = "__heap_base", .value = *recipe.heap_base, .is_exported = true});
  const wasm::Global calls = module.global({.name = "calls", .is_mutable = true});
  const auto add = [&](const char* name, int parameters, const Write& write) {
    Function f(name, wasm::Type::I32);
    Local<I32> first{};
    if (recipe.misshapen != name)
      for (int k = 0; k < parameters; ++k) {
        const auto parameter = f.parameter<I32>("p" + std::to_string(k));
        if (k == 0) first = parameter;
      }
    else leave(f, 0), f.ret();
    if (recipe.misshapen != name) write(f, first);
    else f.op("unreachable");
    module.add(f.finish().value(), recipe.left_out == name ? "" : name);
  };
  const auto fine = [](Function& f, Local<I32>) { leave(f, 0); };
  const Write doubles = [&](Function& f, Local<I32> descriptor) { double_bytes(f, descriptor, calls); };
  add("kernel_init", 2, recipe.init ? recipe.init : fine);
  add("kernel_forward", 1, recipe.forward ? recipe.forward : doubles);
  add("kernel_backward", 1, fine);
  add(
      "kernel_info", 1, recipe.info ? recipe.info : [&](Function& f, Local<I32> info) {
        f.get(info), f.i32_const(100), f.memory("i32.store");
        f.get(info), f.i32_const(7), f.memory("i32.store", {.offset = 4});
        const auto& [major, minor, patch] = recipe.version;
        f.get(info), f.i32_const(major | minor << 16), f.memory("i32.store", {.offset = 8});
        f.get(info), f.i32_const(patch | recipe.supports_backward << 16), f.memory("i32.store", {.offset = 12});
        leave(f, 0);
      });
  add("kernel_cleanup", 0, recipe.cleanup ? recipe.cleanup : fine);
  const std::string name = "doubler";
  module.data(100, {reinterpret_cast<const std::uint8_t*>(name.data()), name.size()});
  return module.encode();
}

// Every byte of `a` is i, results are spoilt.
struct Call {
  std::vector<std::byte> a = {std::byte{1}, std::byte{2}, std::byte{3}}, params{12};
  std::vector<std::byte> output{3, std::byte{0xa5}}, scratch{4, std::byte{0xa5}};
  WasmKernelCall view() { return {.a = a, .output = output, .scratch = scratch, .params = params}; }
};

inline std::string said(const Status& status) {
  return status ? "ok" : std::string(name(status.error().code)) + ": " + status.error().message;
}
#define EXPECT_SAYS(status, part) EXPECT_NE(said(status).find(part), std::string::npos) << said(status)

inline Status load_and_run(const Bytes& module, const WasmLimits& limits = {}) {
  TRIREME_TRY(kernel, host()->load(module, limits));
  Call call;
  return kernel.forward(call.view());
}

inline void spin(Function& f, Local<I32>) {
  const Label again = f.loop();
  f.br(again), f.end(again), f.op("unreachable");
}

}  // namespace trireme::doubler
