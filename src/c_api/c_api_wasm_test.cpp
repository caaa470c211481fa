// Kernel modules through the C ABI: our own RMSNorm in a host that does not know it, its limits, and misuse.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernel_abi/module.hpp"
#include "trireme.h"

namespace {

class CApiWasm : public testing::Test {
 protected:
  void SetUp() override {
    const trireme_status status = trireme_wasm_host_open(nullptr, &host);
    if (status == TRIREME_NO_DEVICE) GTEST_SKIP() << trireme_last_error();
    ASSERT_EQ(status, TRIREME_OK) << trireme_last_error();
    module = trireme::emit_kernel_abi("rms_norm").value();
  }
  void TearDown() override { EXPECT_EQ(trireme_wasm_host_destroy(host), TRIREME_OK); }

  trireme_wasm_kernel* load() {
    trireme_wasm_kernel* kernel = nullptr;
    EXPECT_EQ(trireme_wasm_kernel_load(host, module.data(), module.size(), nullptr, &kernel), TRIREME_OK)
        << trireme_last_error();
    return kernel;
  }
  static void refused(trireme_status got, trireme_status status, const std::string& part) {
    EXPECT_EQ(got, status);
    EXPECT_NE(std::string(trireme_last_error()).find(part), std::string::npos) << trireme_last_error();
  }

  trireme_wasm_host* host = nullptr;
  std::vector<std::uint8_t> module;
};

constexpr std::uint32_t rows = 3, columns = 5;

// RMSNorm's params of version 1.1, and its arrays.
struct RmsNorm {
  std::vector<float> x = std::vector<float>(rows * columns), weight = std::vector<float>(columns, 2);
  std::vector<float> y = std::vector<float>(rows * columns, NAN);
  std::vector<unsigned char> params = std::vector<unsigned char>(40);

  RmsNorm() {
    const float eps = 0;
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = k % columns ? 0.0f : 1.0f + static_cast<float>(k);
    std::memcpy(params.data(), &eps, 4);
    std::memcpy(params.data() + 4, &columns, 4);
    std::memcpy(params.data() + 8, &rows, 4);
  }
  static std::size_t bytes(const std::vector<float>& values) { return 4 * values.size(); }
  trireme_wasm_call forward() {
    trireme_wasm_call call = {};
    call.struct_size = sizeof call;
    call.a = x.data(), call.a_bytes = bytes(x);
    call.b = weight.data(), call.b_bytes = bytes(weight);
    call.output = y.data(), call.output_bytes = bytes(y);
    call.params = params.data(), call.params_bytes = params.size();
    return call;
  }
};

TEST_F(CApiWasm, RunsAModule) {
  const char* path = nullptr;
  int32_t version = 0;
  ASSERT_EQ(trireme_wasm_host_library(host, &path, &version), TRIREME_OK);
  EXPECT_NE(std::string(path), "");
  EXPECT_GE(version, 25);

  trireme_wasm_kernel* kernel = load();
  trireme_wasm_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(trireme_wasm_kernel_info(kernel, &info), TRIREME_OK);
  EXPECT_STREQ(info.name, "rmsnorm_f32");
  EXPECT_EQ(info.version[0], 1);
  EXPECT_EQ(info.version[1], 1);
  EXPECT_TRUE(info.supports_backward);

  // A row with one value: y = √columns · weight there.
  RmsNorm norm;
  const trireme_wasm_call call = norm.forward();
  ASSERT_EQ(trireme_wasm_kernel_forward(kernel, &call), TRIREME_OK) << trireme_last_error();
  for (std::size_t k = 0; k < norm.y.size(); ++k)
    EXPECT_NEAR(norm.y[k], k % columns ? 0 : 2 * std::sqrt(5.0), 1e-5) << k;
  EXPECT_EQ(trireme_wasm_kernel_destroy(kernel), TRIREME_OK);
}

TEST_F(CApiWasm, RegionsOfTheBackward) {
  trireme_wasm_kernel* kernel = load();
  RmsNorm norm;
  std::vector<float> dy(rows * columns, 1), dweight(columns, NAN), workspace(64 * rows);
  trireme_wasm_call call = norm.forward();
  call.a = dy.data(), call.a_bytes = RmsNorm::bytes(dy);
  call.b = norm.x.data(), call.b_bytes = RmsNorm::bytes(norm.x);
  call.scratch = workspace.data(), call.scratch_bytes = RmsNorm::bytes(workspace);
  const trireme_wasm_region regions[] = {{16, norm.weight.data(), RmsNorm::bytes(norm.weight), nullptr, 0},
                                         {32, nullptr, 0, dweight.data(), RmsNorm::bytes(dweight)}};
  call.regions = regions, call.region_count = 2;
  ASSERT_EQ(trireme_wasm_kernel_backward(kernel, &call), TRIREME_OK) << trireme_last_error();
  EXPECT_NEAR(dweight[0], rows * std::sqrt(5.0), 1e-5);
  EXPECT_EQ(dweight[1], 0);
  EXPECT_EQ(trireme_wasm_kernel_destroy(kernel), TRIREME_OK);
}

TEST_F(CApiWasm, fault_36_LimitsAreTheCallers) {
  trireme_wasm_kernel* kernel = nullptr;
  trireme_wasm_limits limits = {};
  limits.struct_size = sizeof limits;
  const auto load_with = [&] { return trireme_wasm_kernel_load(host, module.data(), module.size(), &limits, &kernel); };
  ASSERT_EQ(load_with(), TRIREME_OK) << trireme_last_error();  // zeros are the defaults
  EXPECT_EQ(trireme_wasm_kernel_destroy(kernel), TRIREME_OK);
  limits.functions = 2;
  refused(load_with(), TRIREME_INVALID_PROGRAM, "functions: 22; the limit is 2 (WasmLimits::functions)");
  limits.functions = 0, limits.seconds = -1;
  refused(load_with(), TRIREME_INVALID_ARGUMENT, "seconds is -1");
  limits.seconds = 0, limits.memory_bytes = 2 << 20;
  ASSERT_EQ(load_with(), TRIREME_OK) << trireme_last_error();
  RmsNorm norm;
  norm.x.resize(1 << 19);
  const trireme_wasm_call call = norm.forward();
  refused(trireme_wasm_kernel_forward(kernel, &call), TRIREME_OUT_OF_MEMORY, "the limit is 2097152");
  EXPECT_EQ(trireme_wasm_kernel_destroy(kernel), TRIREME_OK);
}

TEST_F(CApiWasm, fault_29_MisuseIsRefused) {
  trireme_wasm_kernel* kernel = nullptr;
  refused(trireme_wasm_host_open("/nowhere/libwasmtime.so", &host), TRIREME_NO_DEVICE, "pip install wasmtime");
  refused(trireme_wasm_host_open(nullptr, nullptr), TRIREME_INVALID_ARGUMENT, "host is null");
  refused(trireme_wasm_kernel_load(nullptr, module.data(), module.size(), nullptr, &kernel), TRIREME_INVALID_ARGUMENT,
          "host: a null handle");
  refused(trireme_wasm_kernel_load(host, nullptr, 8, nullptr, &kernel), TRIREME_INVALID_ARGUMENT, "module is null");
  refused(trireme_wasm_kernel_load(host, module.data(), module.size(), nullptr, nullptr), TRIREME_INVALID_ARGUMENT,
          "kernel is null");
  refused(trireme_wasm_kernel_load(host, module.data(), 100, nullptr, &kernel), TRIREME_INVALID_PROGRAM,
          "not a valid WebAssembly module");
  trireme_wasm_limits none = {};
  refused(trireme_wasm_kernel_load(host, module.data(), module.size(), &none, &kernel), TRIREME_INVALID_ARGUMENT,
          "limits.struct_size is 0");

  kernel = load();
  trireme_wasm_info info = {};
  refused(trireme_wasm_kernel_info(kernel, &info), TRIREME_INVALID_ARGUMENT, "info.struct_size is 0");
  refused(trireme_wasm_kernel_forward(kernel, nullptr), TRIREME_INVALID_ARGUMENT, "call is null");
  RmsNorm norm;
  trireme_wasm_call call = norm.forward();
  call.b = nullptr;
  refused(trireme_wasm_kernel_forward(kernel, &call), TRIREME_INVALID_ARGUMENT, "b is null");
  call = norm.forward(), call.region_count = 1;
  refused(trireme_wasm_kernel_forward(kernel, &call), TRIREME_INVALID_ARGUMENT, "regions is null");
  call = norm.forward(), call.params_bytes = 8;
  refused(trireme_wasm_kernel_forward(kernel, &call), TRIREME_INVALID_ARGUMENT, "kernel_init returned 3");
  EXPECT_TRUE(std::isnan(norm.y[0]));
  refused(trireme_wasm_kernel_forward(reinterpret_cast<trireme_wasm_kernel*>(host), &call), TRIREME_INVALID_ARGUMENT,
          "kernel");
  EXPECT_EQ(trireme_wasm_kernel_destroy(kernel), TRIREME_OK);
  refused(trireme_wasm_kernel_forward(kernel, &call), TRIREME_INVALID_ARGUMENT, "was destroyed");
  EXPECT_EQ(trireme_wasm_kernel_destroy(nullptr), TRIREME_OK);
}

}  // namespace
