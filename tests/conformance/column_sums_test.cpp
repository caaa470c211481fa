// Column sums and maxima into divided, wrapped and scalar results are kernels like any other (faults 47, 61): on every
// device the reference's bits, for spreads, shapes, types, threads and chunks drawn at random; and every target emits
// them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "devices/arguments.hpp"
#include "plan/devices_for_test.hpp"
#include "plan/ops.hpp"
#include "reference/reference.hpp"
#include "same_bits_for_test.hpp"
#include "schedule/lower.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

std::string program(const std::string& spread, const std::string& reduction = "colsum") {
  return fmt::format("p(x[i,j]) -> (s[{}])\n  s = {}(x * x)\n", spread, reduction);
}

// With rows that are read twice, stored and summed in other ways beside it.
std::string program_beside(const std::string& spread, const std::string& other, const std::string& reduction) {
  return fmt::format(
      "p(x[i,j], w[{0}] = 1) -> (s[{0}], y[i,j], c[j], t[], r[i], u[{1}])\n  r = mean(x)\n  y = (x - r) * w\n"
      "  s = {2}(y * x)\n  c = colsum(x)\n  t = {2}(y)\n  u = colsum(x - r)\n",
      spread, other, reduction);
}

TEST(ColumnSums, fault_47_LongRowsAndManyRows) {
  expect_same_bits(program(""), "p 2x40000");
  expect_same_bits(program(""), "p 40000x1", {.threads = 3});
  expect_same_bits(program(""), "p 0x5");
  expect_same_bits(program("j % 2"), "p 2x70001");
  expect_same_bits(program("i % 3, j"), "p 0x5");
  expect_same_bits(program("i % 3, j"), "p 2x5");  // an entry without rows
  expect_same_bits(program("j % 9"), "p 3x5");     // entries without columns
  expect_same_bits(program("i / 4"), "p 30x33 s=bf16");
  expect_same_bits(program("i % 4"), "p 3000x33", {.threads = 2, .chunk_rows = 100});
  expect_same_bits(program("i % 32, j"), "p 20000x16", {.threads = 5});
  expect_same_bits(program("i / 1000, j"), "p 20001x16", {.threads = 5});
  expect_same_bits(program("(i / 3) % 5, j"), "p 9001x65", {.threads = 2});
  expect_same_bits(program("i % 3, j"), "p 100x5000");   // in loops
  expect_same_bits(program("i / 7, j"), "p 100x20000");  // long rows, shared by several blocks
}

// As sums, but for what nothing lands on: -inf. NaN wins, and +0 over -0.
TEST(ColumnMaxima, LongRowsAndManyRows) {
  auto maximum = [](const std::string& spread) { return program(spread, "colmax"); };
  expect_same_bits(maximum("j"), "p 300x257 s=bf16", {.threads = 3});
  expect_same_bits(maximum("j"), "p 20000x3", {.threads = 5, .chunk_rows = 100});
  expect_same_bits(maximum(""), "p 2x40000");
  expect_same_bits(maximum(""), "p 40000x1", {.threads = 3});
  expect_same_bits(maximum(""), "p 0x5");
  expect_same_bits(maximum("j % 2"), "p 2x70001");
  expect_same_bits(maximum("i % 3, j"), "p 0x5");
  expect_same_bits(maximum("i % 3, j"), "p 2x5");  // an entry without rows
  expect_same_bits(maximum("j % 9"), "p 3x5");     // entries without columns
  expect_same_bits(maximum("i, j % 9"), "p 3x5");
  expect_same_bits(maximum("i / 4"), "p 30x33 s=i8");
  expect_same_bits(maximum("(i / 3) % 5, j"), "p 9001x65", {.threads = 2});
  expect_same_bits(maximum("i % 3, j"), "p 100x5000");   // in loops
  expect_same_bits(maximum("i / 7, j"), "p 100x20000");  // long rows, shared by several blocks
  // One result and sums beside it, of the same entries; and with rows as lanes.
  expect_same_bits("p(x[i,j]) -> (s[j], m[j], y[i,j])\n  y = x - 1\n  s = colsum(y)\n  m = colmax(y)\n", "p 129x600");
  expect_same_bits("p(x[i,j]) -> (m[j], y[i,j])\n  y = x - 1\n  m = colmax(y)\n", "p 4096x3");
  expect_same_bits(
      "p(x[i,j]) -> (m[j], z[], y[i,j])\n  y = select(i == 5, log(x), -0 * x)\n  m = colmax(y)\n  z = colmax(-y)\n",
      "p 300x40");
}

TEST(ColumnSums, fault_61_GiveTheBitsOfTheReference) {
  const char* long_runs = std::getenv("LONG");
  int turns = long_runs && std::string_view(long_runs) == "1" ? 3000 : 40;
  std::mt19937 random(7);
  auto one_of = [&](auto... values) {
    std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % sizeof...(values)];
  };
  for (int turn = 0; turn < turns && !testing::Test::HasFailure(); ++turn) {
    std::int64_t columns = one_of(1, 3, 32, 33, 100, 257, 600), rows = one_of(1, 2, 7, 64, 129, 300);
    auto axis = [&](char index) -> std::string {
      int a = one_of(1, 2, 3, 5, 16, 64), b = one_of(1, 2, 3, 7, 12, 300);
      switch (random() % 5) {
        case 0: return "";
        case 1: return std::string(1, index);
        case 2: return fmt::format("{} / {}", index, a);
        case 3: return fmt::format("{} % {}", index, b);
        default: return fmt::format("({} / {}) % {}", index, a, b);
      }
    };
    auto spread = [&] {
      std::string row = axis('i'), column = axis('j');
      if (row == "i" || (row.empty() && column == "j")) row = "i % 5";
      return row + (row.empty() || column.empty() ? "" : ", ") + column;
    };
    std::string line = fmt::format("p {}x{} x={} s={}", rows, columns, one_of("f32", "bf16", "f64", "f8e4m3"),
                                   one_of("f32", "f16", "f64"));
    const std::string first = spread(), second = spread();
    const std::string reduction = random() % 3 ? "colsum" : "colmax";
    expect_same_bits(random() % 2 ? program(first, reduction) : program_beside(first, second, reduction), line,
                     {.threads = one_of(1, 2, 3), .chunk_rows = one_of(0, 0, 1, 17)});
  }
}

// Results whose columns are two axes that do not join, 4 columns side by side and then a jump; and with more entries
// than the problem has columns.
TEST(ColumnSums, WriteResultsThatLieApart) {
  struct Case {
    const char *spread, *line;
    std::int64_t row_stride, column_stride;
    bool jumps;
  };
  for (const Case& each : {Case{"i % 3, j", "p 20x12", -100, 1, true}, Case{"i / 9, j % 6", "p 20x1", -100, 2, false},
                           Case{"i, j % 6", "p 3x40", 100, -3, false}})
    for (const DeviceEntry* device : devices_here()) {
      Prepared prepared = prepare_problem(parse_problem(each.line).value(), program(each.spread)).value();
      Array& apart = prepared.results()[0];
      std::vector<float> memory(700);
      apart.row_stride = each.row_stride, apart.column_stride = each.column_stride;
      if (each.jumps) apart.column_jumps.push_back({.every = 4, .elements = 5});
      apart.data = memory.data() + 300;
      Problem2d problem = prepared.view();
      auto executable = device->compile(prepared.program, facts_of(prepared.program, problem)).value();
      executable->run(problem, {}).value();
      std::vector<float> got = memory;
      std::fill(memory.begin(), memory.end(), 0.0f);
      run_reference(prepared.program, problem).value();
      EXPECT_EQ(got, memory) << device->name << ' ' << each.spread;
      EXPECT_NE(memory[300], 0.0f);
    }
}

// Emission knows no sum that is made beside the kernels.
// Where few rows share an entry, threads lie side by side: none waits for rows that cannot be.
TEST(ColumnSums, FewRowsOfAnEntryKeepNoThreadsWaiting) {
  for (const Target* target : targets()) {
    Prepared prepared = prepare_problem(parse_problem("modulated_layer_norm 64x256 tokens=4 backward").value()).value();
    const Machine machine = target->machine(target->default_arch).value();
    if (machine.simd) continue;
    const Config config = choose_config(prepared.program, machine, facts_of(prepared.program, prepared.view()));
    const Kernels kernels = lower(prepared.program, config).value();
    for (const Kernel& each : kernels.columns)
      EXPECT_EQ(each.launch.threads(), each.launch.columns_covered) << target->name;
  }
}

TEST(ColumnSums, fault_47_EveryTargetEmitsThem) {
  for (const char* line : {"group_norm 8x64 groups=4 pixels=16 backward", "dynamic_tanh 8x300 backward",
                           "rms_norm_heads 8x128 heads=4 backward", "modulated_layer_norm 8x300 tokens=2 backward"})
    for (const Target* target : targets()) {
      Prepared prepared = prepare_problem(parse_problem(line).value()).value();
      const Machine machine = target->machine(target->default_arch).value();
      const Config config = choose_config(prepared.program, machine, facts_of(prepared.program, prepared.view()));
      Result<Kernels> kernels = lower(prepared.program, config);
      ASSERT_TRUE(kernels) << line << ": " << kernels.error().message;
      Result<Artifact> artifact = target->emit(*kernels, target->default_arch, {});
      EXPECT_TRUE(artifact) << line << ' ' << target->name << ": " << artifact.error().message;
    }
}

}  // namespace
}  // namespace trireme
