// Shapes of problems, found in those of their arrays.
#include <sys/mman.h>

#include "plan/devices_for_test.hpp"
#include "plan/plan_for_test.hpp"

namespace trireme {
namespace {

using Shapes = std::map<std::string, Dims>;

RowProgram parsed(std::string_view text) { return RowProgram::parse(text).value(); }

Dims shape_of(const RowProgram& program, const Shapes& shapes, Axes axes = last(1)) {
  return problem_shape(program, shapes, axes).value();
}

TEST(ProblemShape, ElementsSayAll) {
  EXPECT_EQ(shape_of(rms_norm(), {{"x", {2, 3, 50}}, {"gamma", {50}}}), Dims({2, 3, 50}));
  EXPECT_EQ(shape_of(rms_norm(), {{"gamma", {50}}, {"y", {4, 50}}, {"rstd", {4}}}), Dims({4, 50}));
  EXPECT_EQ(shape_of(rms_norm(), {{"x", {50}}}), Dims({50}));
}

TEST(ProblemShape, RowsAndColumnsSayItTogether) {
  const RowProgram embedding = RowProgram::named("embedding").value();
  EXPECT_EQ(shape_of(embedding, {{"token", {2, 3}}, {"table", {9, 50}}}), Dims({2, 3, 50}));
  EXPECT_EQ(shape_of(embedding, {{"token", {}}, {"table", {9, 50}}}), Dims({50}));
  EXPECT_EQ(shape_of(embedding, {{"token", {6}}, {"table", {9, 5, 10}}}, last(2)), Dims({6, 5, 10}));
  EXPECT_EQ(shape_of(embedding, {{"table", {9, 50}}, {"y", {6, 50}}}), Dims({6, 50}));
  const RowProgram scaled = parsed("scaled(s[i, j / 32], g[j]) -> (y[i,j])\n    y = s * g");
  EXPECT_EQ(shape_of(scaled, {{"s", {2, 3, 4}}, {"g", {128}}}), Dims({2, 3, 128}));
  // A result that is given says it, too.
  const RowProgram matmul = RowProgram::named("matmul").value();
  EXPECT_EQ(shape_of(matmul, {{"x", {3, 64}}, {"w", {5, 64}}, {"y", {15}}}), Dims({15, 64}));
}

TEST(ProblemShape, AnArrayThatDividesRowsSaysAsManyAsFillIt) {
  const RowProgram matmul = RowProgram::named("matmul").value();
  EXPECT_EQ(shape_of(matmul, {{"x", {3, 64}}, {"w", {5, 64}}}), Dims({3, 64}));  // m is 1 unless it is said
  EXPECT_EQ(problem_shape(matmul, {{"x", {3, 64}}, {"w", {5, 64}}}, last(1), {{"m", 5}}).value(), Dims({15, 64}));
  EXPECT_EQ(problem_shape(matmul, {{"x", {3, 8, 64}}, {"w", {5, 8, 64}}}, last(2), {{"m", 5}}).value(),
            Dims({15, 8, 64}));
  EXPECT_EQ(problem_shape(matmul, {{"x", {0, 64}}, {"w", {5, 64}}}, last(1), {{"m", 5}}).value(), Dims({0, 64}));
  const RowProgram shares = parsed("shares(s[i / (k / 2), j / 32], g[j], k = 6) -> (y[i,j])\n    y = s * g");
  EXPECT_EQ(shape_of(shares, {{"s", {2, 4}}, {"g", {128}}}), Dims({6, 128}));
  const RowProgram of_columns = parsed("of_columns(s[i / n], g[j]) -> (y[i,j])\n    y = s * g");
  EXPECT_EQ(shape_of(of_columns, {{"s", {2}}, {"g", {16}}}), Dims({32, 16}));
  auto refused = [&](const Shapes& shapes, double m, const std::string& why) {
    expect_refused(problem_shape(matmul, shapes, last(1), {{"m", m}}), Code::InvalidArgument, why);
  };
  refused({{"x", {2, 3, 64}}}, 5, "x has the shape 2x3x64, and its first axis would say how many rows there are, 5 to");
  refused({{"x", {std::int64_t{1} << 62, 64}}}, 5, "x has the shape");
  refused({{"x", {3, 64}}}, 0, "an index divisor must be a positive integer, not 0");
  refused({{"x", {3, 64}}}, 1.5, "an index divisor must be a positive integer");
}

TEST(ProblemShape, RefusalsNameWhatIsNeeded) {
  auto refused = [](const char* name, const Shapes& shapes, const std::string& why, Axes axes = last(1)) {
    expect_refused(problem_shape(RowProgram::named(name).value(), shapes, axes), Code::InvalidArgument, why);
  };
  refused("rms_norm", {{"gamma", {50}}},
          "rms_norm needs an array for x, or y, or rstd: nothing else says how many rows there are");
  refused("rms_norm", {}, "rms_norm needs an array for x, or y: nothing else says how many rows and columns there are");
  refused("embedding", {{"token", {6}}},
          "embedding needs an array for table, or y: nothing else says how many columns");
  refused("matmul", {{"w", {5, 64}}}, "matmul needs an array for x, or y: nothing else says how many rows there are");
  refused("embedding", {{"token", {6}}, {"table", {50}}}, "table has the shape 50, and the last 2 axes of it", last(2));
  expect_refused(problem_shape(parsed("p(x[i]) -> (y[i])\n    y = x"), Shapes{{"x", {6}}}), Code::InvalidArgument,
                 "no array of p says how many columns there are");
}

// Results per element have the type of who says the columns.
TEST(ProblemShape, TheLeadingOperandSaysTypes) {
  auto types = [](const char* name, Dims shape, std::map<std::string, Type> said) {
    const PlanOptions options{.program = RowProgram::named(name).value(), .shape = shape, .types = std::move(said)};
    return Plan::create(Device::reference(), options).value().sku().types;
  };
  EXPECT_EQ(types("embedding", {6, 50}, {{"table", Type::BF16}}), "token=i32 table=bf16 scale=bf16 y=bf16");
  EXPECT_EQ(types("embedding", {6, 50}, {}), "token=i32 table=f32 scale=f32 y=f32");
  EXPECT_EQ(types("matmul", {6, 50}, {{"x", Type::F16}}), "x=f16 w=f16 y=f32");
}

// Whatever a table's own extent is, its rows are found: the other arrays are small, and the table's bytes are counted
// beyond 32 bits. Nothing of it is in memory but what is picked.
TEST(ProblemShape, RowsOfATableBeyond4GiB) {
  constexpr std::int64_t columns = 1024, rows = (std::int64_t{5} << 30) / columns / 2;  // of bf16
  constexpr std::size_t bytes = rows * columns * 2;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for 5 GiB";
  auto* table = static_cast<std::uint16_t*>(memory);
  const std::int64_t beyond = (std::int64_t{1} << 32) / 2 / columns;  // the first row that 32 bits do not reach
  const std::vector<std::int64_t> tokens = {rows - 1, beyond, 0, rows, -1, beyond - 1};
  for (std::size_t k = 0; k < tokens.size(); ++k)
    if (tokens[k] >= 0 && tokens[k] < rows)
      for (std::int64_t j = 0; j < columns; ++j)
        table[tokens[k] * columns + j] = static_cast<std::uint16_t>(0x3F80 + k * 8 + j % 8);
  std::vector<const DeviceEntry*> here = cpus();
  here.push_back(&devices()[0]);
  for (const DeviceEntry* each : here) {
    std::vector<std::uint16_t> y(tokens.size() * columns, 0xFFFF);
    run("embedding",
        {{"token", View{const_cast<std::int64_t*>(tokens.data()), Type::I64, {std::ssize(tokens)}}},
         {"table", View{table, Type::BF16, {rows, columns}}},
         {"y", View{y.data(), Type::BF16, {std::ssize(tokens), columns}}}},
        {.device = Device::named(each->name).value()})
        .value();
    for (std::size_t k = 0; k < tokens.size(); ++k)
      for (std::int64_t j = 0; j < columns; ++j) {
        const bool inside = tokens[k] >= 0 && tokens[k] < rows;
        const auto want = static_cast<std::uint16_t>(inside ? 0x3F80 + k * 8 + j % 8 : 0);
        ASSERT_EQ(y[k * columns + j], want) << each->name << " token " << tokens[k] << " column " << j;
      }
  }
  munmap(memory, bytes);
}

}  // namespace
}  // namespace trireme
