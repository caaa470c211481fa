// Modules of the kernel ABI in the host that trusts nobody, against the reference.
#include "kernel_abi/call.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"

namespace trireme {
namespace {

const Result<WasmHost>& host() {
  static const Result<WasmHost> opened = WasmHost::open();
  return opened;
}
#define TRIREME_SKIP_WITHOUT_WASMTIME() \
  if (!host()) GTEST_SKIP() << host().error().message

using Values = std::map<std::string, std::vector<float>, std::less<>>;

WasmKernel load(std::string_view program, std::string_view arch = "simd128") {
  return host()->load(emit_kernel_abi(program, arch).value()).value();
}
constexpr std::string_view archs[] = {"simd128", "compact", "scalar"};

// The reference on an entry's own program, for the samples of the operands.
struct Sampled {
  Prepared prepared;
  Values inputs, outputs;
};
Sampled reference(const KernelAbi& abi, bool backward, int rows, int columns, float value, const std::string& absent) {
  const AbiEntry& entry = backward ? abi.backward : abi.forward;
  const std::string line = std::string(entry.text.substr(1, entry.text.find('(') - 1)) + ".row " +
                           std::to_string(rows) + "x" + std::to_string(columns) + absent;
  Sampled result{prepare_problem(parse_problem(line).value(), std::string(entry.text)).value()};
  Prepared& prepared = result.prepared;
  const Problem2d view = prepared.view();
  const auto values = [](const Array& array, std::int64_t count) {
    const auto* data = static_cast<const float*>(array.data);
    return std::vector<float>(data, data + count);
  };
  for (std::size_t k = 0; k < prepared.program.operands.size(); ++k) {
    const Operand& operand = prepared.program.operands[k];
    if (operand.name == abi.value) {
      *static_cast<float*>(view.arrays[k].data) = value;
      continue;
    }
    const std::int64_t count = (operand.spread.row.present ? rows : 1) * (operand.spread.column.present ? columns : 1);
    if (operand.name == "rms")
      for (std::int64_t i = 0; i < count; ++i) static_cast<float*>(view.arrays[k].data)[i] = 0.5f + i % 3;
    result.inputs[operand.name] = values(view.arrays[k], count);
  }
  const DeviceEntry& device = devices()[0];
  device.compile(prepared.program, facts_of(prepared.program, view)).value()->run(view, {}).value();
  for (std::size_t k = 0; k < prepared.program.results.size(); ++k) {
    const Output& output = prepared.program.results[k];
    const std::int64_t count = (output.spread.row.present ? rows : 1) * (output.spread.column.present ? columns : 1);
    result.outputs[output.name] = values(view.arrays[prepared.program.array_of_result(k)], count);
  }
  return result;
}

void expect_same(const KernelAbi& abi, bool backward, int rows, int columns, const std::string& absent = "") {
  static std::map<std::pair<std::string_view, std::string_view>, WasmKernel> kernels;
  SCOPED_TRACE(std::string(abi.name) + (backward ? " backward " : " ") + std::to_string(rows) + "x" +
               std::to_string(columns) + absent);
  const float value = abi.value == "beta" ? 1.702f : 1e-5f;
  const Sampled wanted = reference(abi, backward, rows, columns, value, absent);
  for (std::string_view arch : archs) {
    Values got = wanted.outputs;
    for (auto& [name, values] : got) std::ranges::fill(values, NAN);
    KernelAbiCall call{.backward = backward, .rows = rows, .columns = columns, .value = value};
    for (const auto& [name, values] : wanted.inputs) call.inputs[name] = values;
    for (auto& [name, values] : got) call.outputs[name] = values;
    const std::pair which(abi.program, arch);
    if (!kernels.contains(which)) kernels.emplace(which, load(abi.program, arch));
    const Status status = call_kernel(kernels.at(which), abi, call);
    ASSERT_TRUE(status) << arch << ": " << status.error().message;
    for (const auto& [name, values] : got)
      EXPECT_TRUE(
          std::ranges::equal(std::as_bytes(std::span(values)), std::as_bytes(std::span(wanted.outputs.at(name)))))
          << arch << " " << name;
  }
}

// Faults 1 and 2: zero rows, and odd widths.
TEST(KernelAbiCall, fault_02_TheReferencesBits) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  for (const KernelAbi& abi : kernel_abis())
    for (bool backward : {false, true})
      for (int columns : {1, 2, 3, 31, 33, 541}) expect_same(abi, backward, columns == 33 ? 300 : 5, columns);
  expect_same(kernel_abis()[0], false, 3, 65537);
  expect_same(kernel_abis()[0], true, 3, 65537);
}

TEST(KernelAbiCall, fault_01_ZeroRows) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  for (const KernelAbi& abi : kernel_abis())
    for (bool backward : {false, true}) expect_same(abi, backward, 0, 7);
}

TEST(KernelAbiCall, InfoOfOurModules) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  for (const KernelAbi& abi : kernel_abis()) {
    for (std::string_view arch : archs) {
      const WasmKernel kernel = load(abi.program, arch);
      EXPECT_EQ(kernel.info().name, abi.name);
      EXPECT_EQ(kernel.info().version, (std::array{1, 1, 0}));
      EXPECT_TRUE(kernel.info().supports_backward);
    }
  }
}

TEST(KernelAbiCall, OptionalArrays) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const KernelAbi& rms = kernel_abis()[0];
  expect_same(rms, true, 9, 70, " rms=none weight=none dweight=none");
  expect_same(rms, true, 9, 70, " rms=none");
  expect_same(rms, false, 9, 70, " rms=none");
  expect_same(kernel_abis()[1], true, 9, 70, " x=none dgate=none");
}

TEST(KernelAbiCall, SaysWhatIsWrong) {
  TRIREME_SKIP_WITHOUT_WASMTIME();
  const KernelAbi& abi = *find_kernel_abi("rmsnorm_f32");
  EXPECT_EQ(find_kernel_abi("softmax"), nullptr);
  WasmKernel kernel = load("rms_norm");
  std::vector<float> x(12), weight(4), y(12);
  const auto said = [&](KernelAbiCall call) {
    const Status status = call_kernel(kernel, abi, call);
    return status ? "ok" : status.error().message;
  };
  const KernelAbiCall good{.rows = 3, .columns = 4, .inputs = {{"x", x}, {"weight", weight}}, .outputs = {{"y", y}}};
  EXPECT_EQ(said(good), "ok");
  KernelAbiCall bad = good;
  bad.inputs.erase("weight");
  EXPECT_EQ(said(bad), "the operand weight is missing; there are: x, weight");
  bad = good, bad.outputs["z"] = y;
  EXPECT_EQ(said(bad), "no result 'z'; there are: y, rms (optional)");
  bad = good, bad.rows = 4;
  EXPECT_EQ(said(bad), "x has 12 values; 4 rows of 4 columns want 16");
  bad = good, bad.columns = 0;
  EXPECT_EQ(said(bad), "3 rows of 0 columns: the kernel ABI has 32 bits for each");
}

}  // namespace
}  // namespace trireme
