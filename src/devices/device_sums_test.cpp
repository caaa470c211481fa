// Column sums into divided, wrapped and scalar results by kernels, interpreted: the reference's bits for spreads,
// shapes and types drawn at random.
#include "devices/device_sums.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "devices/arguments.hpp"
#include "devices/lanes/lanes_device.hpp"
#include "plan/check.hpp"
#include "reference/reference.hpp"

namespace trireme {
namespace {

TEST(Shares, SayWhichIndicesLandOnAnEntry) {
  for (AxisIndexing axis : {AxisIndexing{},
                            {.present = true},
                            {.present = true, .divide = 3},
                            {.present = true, .wrap = 4},
                            {.present = true, .divide = 3, .wrap = 2}})
    for (std::int64_t count : {0, 1, 2, 3, 6, 7, 12, 13, 29}) {
      Shares shares = shares_of(axis, count);
      for (std::int64_t entry = 0; entry < axis.extent(count); ++entry) {
        std::int64_t k = 0;
        for (std::int64_t i = 0; i < count; ++i)
          if (axis.entry(i) == entry) {
            EXPECT_EQ(i, (k / shares.run) * shares.period + entry * shares.run + k % shares.run);
            ++k;
          }
        EXPECT_EQ(k, shares.count(entry)) << axis.divide << ' ' << axis.wrap << ' ' << count << ' ' << entry;
      }
    }
}

void check(const std::string& text, const std::string& line) {
  SCOPED_TRACE(line + "\n" + text);
  auto prepare = [&] { return prepare_problem(parse_problem(line).value(), text); };
  Result<Prepared> wanted = prepare(), got = prepare();
  ASSERT_TRUE(wanted) << wanted.error().message;
  Status status = run_reference(wanted->program, wanted->view());
  ASSERT_TRUE(status) << status.error().message;
  auto executable = lanes::compile(got->program, facts_of(got->program, got->view()));
  ASSERT_TRUE(executable) << executable.error().message;
  ASSERT_NE((*executable)->describe().find("summed by kernels"), std::string::npos);
  status = executable.value()->run(got->view(), {});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(digest_of(*got), digest_of(*wanted));
}

std::string program(const std::string& spread, bool two = false) {
  if (!two) return fmt::format("p(x[i,j]) -> (s[{}])\n  s = colsum(x * x)\n", spread);
  return fmt::format(
      "p(x[i,j]) -> (s[{}], y[i,j], c[j], t[])\n  y = x * 2\n  s = colsum(x * x)\n"
      "  c = colsum(x)\n  t = colsum(y)\n",
      spread);
}

TEST(DeviceSums, LongRowsAndManyRows) {
  check(program(""), "p 2x40000");  // chunks of a row, twice
  check(program(""), "p 40000x1");  // chunks of the row of row sums
  check(program(""), "p 0x5");
  check(program("j % 2"), "p 2x70001");  // chunks of different number
  check(program("i % 3, j"), "p 0x5");
  check(program("i % 3, j"), "p 2x5");  // an entry without rows
  check(program("j % 9"), "p 3x5");     // entries without columns
  check(program("i / 4"), "p 30x33 s=bf16");
}

TEST(DeviceSums, GiveTheBitsOfTheReference) {
  const char* long_runs = std::getenv("LONG");
  int turns = long_runs && std::string_view(long_runs) == "1" ? 3000 : 25;
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
    std::string row = axis('i'), column = axis('j');
    if (row == "i" || (row.empty() && column == "j")) row = "i % 5";
    std::string spread = row + (row.empty() || column.empty() ? "" : ", ") + column;
    std::string line = fmt::format("p {}x{} x={} s={}", rows, columns, one_of("f32", "bf16", "f64", "f8e4m3"),
                                   one_of("f32", "f16", "f64"));
    check(program(spread, random() % 2), line);
  }
}

// A result whose columns are two axes that do not join: 4 columns side by side, then a jump.
TEST(DeviceSums, WriteResultsThatLieApart) {
  Prepared prepared = prepare_problem(parse_problem("p 20x12").value(), program("i % 3, j")).value();
  Array apart = prepared.results[0];
  std::vector<float> memory(400);
  apart.row_stride = -100;
  apart.column_jumps.push_back({.every = 4, .elements = 5});
  apart.data = memory.data() + 300;
  Problem2d problem = prepared.view();
  problem.results = std::span(&apart, 1);
  auto executable = lanes::compile(prepared.program, facts_of(prepared.program, problem)).value();
  executable->run(problem, {}).value();
  std::vector<float> got = memory;
  std::fill(memory.begin(), memory.end(), 0.0f);
  run_reference(prepared.program, problem).value();
  EXPECT_EQ(got, memory);
  EXPECT_NE(memory[300 + 9], 0.0f);
}

}  // namespace
}  // namespace trireme
