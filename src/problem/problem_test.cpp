#include "problem/problem.hpp"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(ProblemLine, reads_every_part) {
  Problem problem =
      parse_problem("rms_norm 8x33x4097 x=bf16+3:5000 gamma=none eps=1e-5 backward axes=2 y=f8e4m3 seed=7").value();
  EXPECT_EQ(problem.program, "rms_norm");
  EXPECT_EQ(problem.shape, (std::vector<std::int64_t>{8, 33, 4097}));
  EXPECT_EQ(problem.axes, 2);
  EXPECT_EQ(problem.rows(), 8);
  EXPECT_EQ(problem.columns(), 33 * 4097);
  EXPECT_TRUE(problem.backward);
  EXPECT_EQ(problem.types.at("x"), Type::BF16);
  EXPECT_EQ(problem.types.at("y"), Type::F8E4M3);
  EXPECT_TRUE(problem.absent.contains("gamma"));
  EXPECT_EQ(problem.constants.at("eps"), 1e-5);
  EXPECT_EQ(problem.placements.at("x"), (Placement{3, {5000}}));
  EXPECT_EQ(problem.seed, 7u);
}

TEST(ProblemLine, prints_what_it_reads) {
  for (const char* line :
       {"rms_norm 4096x4096", "softmax 1", "a.row 0x3 x=f64", "op 2x3x4 eps=1e-05 x=i8 backward axes=3",
        "op 8x32x128 q=bf16+1:12288,128 r=f32:-9,0,2 s=:1,2 t=+4", "op 7x257 dq=none:f8e4m3 q=none backward",
        "op 7x257 a=-inf b=f32:300 c=bf16+1 d=f16+2:-9 e=none f=0.1 seed=4294967295"}) {
    Problem problem = parse_problem(line).value();
    EXPECT_EQ(print(problem), line);
    EXPECT_EQ(parse_problem(print(problem)).value(), problem);
  }
}

TEST(ProblemLine, one_axis_is_one_row) {
  Problem problem = parse_problem("  softmax\t541 ").value();
  EXPECT_EQ(problem.rows(), 1);
  EXPECT_EQ(problem.columns(), 541);
}

TEST(ProblemLine, errors_say_what_is_expected) {
  std::pair<const char*, const char*> cases[] = {
      {"", "starts with the name"},
      {"x=bf16 3x4", "starts with the name"},
      {"rms_norm", "expected a shape"},
      {"rms_norm 3xx4", "expected a shape"},
      {"rms_norm 3x-4", "expected a shape"},
      {"rms_norm 3x4y", "expected a shape"},
      {"rms_norm 1x1x1x1x1x1x1x1x1", "at most 8"},
      {"rms_norm 3x0", "at least one column"},
      {"rms_norm 4294967296x4294967296", "2^62"},
      {"rms_norm 99999999999999999999x1", "expected a shape"},
      {"rms_norm 3x4 forward", "expected NAME=TYPE"},
      {"rms_norm 3x4 x=bf17", "f64 f32 f16 bf16"},
      {"rms_norm 3x4 x=", "is a type"},
      {"rms_norm 3x4 x=bf16 x=f32", "stands twice"},
      {"rms_norm 3x4 backward backward", "stands twice"},
      {"rms_norm 3x4 x=bf16+", "+OFFSET"},
      {"rms_norm 3x4 x=bf16+3:", "+OFFSET"},
      {"rms_norm 3x4 x=bf16+-3", "+OFFSET"},
      {"rms_norm 3x4 x=bf16:1,,2", ":STRIDES"},
      {"rms_norm 3x4 x=bf16:1,2,3,4,5,6,7,8,9", ":STRIDES"},
      {"rms_norm 3x4 y=none:f8", "none, or none: and a type (f64"},
      {"rms_norm 3x4 axes=3", "axes=3 of a shape with 2"},
      {"rms_norm 3x4 axes=0", "from 1"},
      {"rms_norm 3x4 seed=-1", "below 2^32"},
  };
  for (auto [line, part] : cases) {
    Result<Problem> problem = parse_problem(line);
    ASSERT_FALSE(problem) << line;
    EXPECT_EQ(problem.error().code, Code::InvalidArgument);
    EXPECT_NE(problem.error().message.find(part), std::string::npos) << line << " -> " << problem.error().message;
  }
}

TEST(ProblemLine, placed_buffers_hold_their_last_element) {
  auto made = [](Type type, std::int64_t rows, std::int64_t columns, const Placement& placement) {
    return make_buffer(type, {{true}, {true}}, {{rows}, {columns}}, placement).value();
  };
  Buffer buffer = made(Type::BF16, 3, 5, {2, {7}});
  EXPECT_EQ(buffer.memory.size(), (2 + 2 * 7 + 5) * 2u);
  EXPECT_EQ(buffer.array.entry(0, 0), buffer.memory.data() + 4);
  Buffer backwards = made(Type::F32, 3, 5, {1, {-7}});
  EXPECT_EQ(backwards.array.entry(2, 0), backwards.memory.data() + 4);
  EXPECT_EQ(backwards.array.entry(0, 5), backwards.memory.data() + backwards.memory.size());
  EXPECT_EQ(made(Type::F32, 0, 5, {}).memory.size(), 0u);
  Buffer transposed = made(Type::F32, 3, 5, {0, {1, -3}});
  EXPECT_EQ(transposed.array.entry(0, 4), transposed.memory.data());
  EXPECT_EQ(transposed.memory.size(), 15 * 4u);
}

TEST(ProblemLine, strides_are_of_all_axes_the_outer_ones_or_the_rows) {
  ArrayAxes axes{{8, 32}, {4, 16}};
  auto strides = [&](Dims said) { return strides_of({.strides = said}, axes); };
  EXPECT_EQ(strides({}).value(), (Dims{2048, 64, 16, 1}));
  EXPECT_EQ(strides({100}).value(), (Dims{3200, 100, 16, 1}));
  EXPECT_EQ(strides({-7, 0}).value(), (Dims{-7, 0, 16, 1}));
  EXPECT_EQ(strides({1, 2, 3, 4}).value(), (Dims{1, 2, 3, 4}));
  Result<Dims> three = strides({1, 2, 3});
  ASSERT_FALSE(three);
  EXPECT_NE(three.error().message.find("for each of its 4 axes, or for the outer 2, or one for its rows"),
            std::string::npos)
      << three.error().message;
  EXPECT_EQ(strides_of({.strides = {3}}, {{}, {16}}).value(), (Dims{3}));
  EXPECT_FALSE(strides_of({.strides = {3}}, {{}, {}}));
}

}  // namespace
}  // namespace trireme
