#include "problem/resolve.hpp"

#include <gtest/gtest.h>

#include "language/print.hpp"
#include "problem/digest.hpp"
#include "reference/oracle.hpp"

namespace trireme {
namespace {

constexpr std::string_view rms_norm_text =
    "rms_norm(x[i,j], gamma[j] = 1, eps = 1e-6, offset = 0) -> (y[i,j], rstd[i])\n"
    "rstd = rsqrt(mean(x * x) + eps)\n"
    "y = x * rstd * (gamma + offset)\n";
constexpr std::string_view cross_entropy =
    "#: range target 0..n-1 integer\n"
    "cross_entropy(x[i,j], target[i]) -> (loss[i], lse[i])\n"
    "top = amax(x)\n"
    "lse = top + log(sum(exp(x - top)))\n"
    "loss = lse - sum(select(j == target, x, 0))\n";

ResolvedProblem resolved(std::string_view line, std::string_view text) {
  return resolve(parse_problem(line).value(), text).value();
}

Type type_of(const Program& bound, std::string_view name) {
  if (std::optional<std::size_t> k = bound.find_operand(name)) return bound.operands[*k].type.value();
  return bound.results[bound.find_result(name).value()].type.value();
}

TEST(Resolve, gives_types_to_what_the_line_leaves_open) {
  Program forward = resolved("rms_norm 3x5 x=bf16", rms_norm_text).bound;
  EXPECT_EQ(type_of(forward, "gamma"), Type::BF16);
  EXPECT_EQ(type_of(forward, "y"), Type::BF16);
  EXPECT_EQ(type_of(forward, "rstd"), Type::F32);
  EXPECT_EQ(type_of(resolved("rms_norm 3x5 gamma=f64", rms_norm_text).bound, "rstd"), Type::F64);
  Program backward = resolved("rms_norm 3x5 x=bf16 y=f16 backward", rms_norm_text).bound;
  EXPECT_EQ(type_of(backward, "x"), Type::BF16);
  EXPECT_EQ(type_of(backward, "dy"), Type::F16);
  EXPECT_EQ(type_of(backward, "rstd"), Type::F32);
  EXPECT_EQ(type_of(backward, "dx"), Type::BF16);
  EXPECT_EQ(type_of(backward, "dgamma"), Type::F32);
}

TEST(Resolve, leaves_out_what_is_absent) {
  Program forward = resolved("rms_norm 3x5 gamma=none rstd=none", rms_norm_text).bound;
  EXPECT_FALSE(forward.find_operand("gamma"));
  EXPECT_FALSE(forward.find_result("rstd"));
  Program backward = resolved("rms_norm 3x5 rstd=none dgamma=none backward", rms_norm_text).bound;
  EXPECT_FALSE(backward.find_operand("rstd"));
  EXPECT_FALSE(backward.find_result("dgamma"));
}

// Types that no array carries: the line says them, of a gradient that does not arrive by its result.
TEST(Resolve, types_of_what_is_absent) {
  const std::string_view text =
      "quantise(x[i,j]) -> (q[i,j], scale[i])\nscale = amax(abs(x)) / largest(q)\nq = x / stop_gradient(scale)\n";
  for (const char* line : {"quantise 3x5 q=none:f8e4m3", "quantise 3x5 q=f8e4m3 backward gradients=scale",
                           "quantise 3x5 q=f8e4m3 dq=none backward gradients=scale",
                           "quantise 3x5 dq=none:f8e4m3 backward gradients=scale",
                           "quantise 3x5 q=f8e4m3 dq=none scale=f32 backward gradients=q,scale"}) {
    const std::string bound = print(resolved(line, text).bound);
    EXPECT_NE(bound.find("448"), std::string::npos) << line << '\n' << bound;
  }
  Result<ResolvedProblem> untyped = resolve(parse_problem("quantise 3x5 q=none").value(), text);
  ASSERT_FALSE(untyped);
  EXPECT_NE(untyped.error().message.find("largest(q) needs a type"), std::string::npos) << untyped.error().message;
}

TEST(Resolve, keeps_constants_with_their_operands) {
  ResolvedProblem problem = resolved("rms_norm 3x5 eps=1e-5", rms_norm_text);
  ASSERT_EQ(problem.constants.size(), problem.bound.operands.size());
  EXPECT_EQ(problem.constants[problem.bound.find_operand("eps").value()], 1e-5);
  problem = resolved("rms_norm 3x5", rms_norm_text);
  EXPECT_EQ(problem.constants[problem.bound.find_operand("eps").value()], 1e-6);
}

TEST(Resolve, errors_name_what_there_is) {
  std::pair<const char*, const char*> cases[] = {{"rms_norm 3x5 beta=f32", "no 'beta', only x gamma eps"},
                                                 {"rms_norm 3x5 eps=f32", "'eps' is a constant"},
                                                 {"rms_norm 3x5 x=3", "'x' is in memory"},
                                                 {"rms_norm 3x5 x=none", "absent"}};
  for (auto [line, part] : cases) {
    Result<ResolvedProblem> problem = resolve(parse_problem(line).value(), rms_norm_text);
    ASSERT_FALSE(problem) << line;
    EXPECT_EQ(problem.error().code, Code::InvalidArgument);
    EXPECT_NE(problem.error().message.find(part), std::string::npos) << problem.error().message;
  }
}

// From line to digest: the reference agrees with the oracle, and the place in memory does not matter.
TEST(Resolve, lines_run) {
  auto run = [](std::string_view line, std::string_view text) {
    ResolvedProblem problem = resolved(line, text);
    Buffers buffers = sampled_buffers(problem).value();
    std::vector<Array> arrays = buffers.arrays();
    Problem2d shape{problem.problem.rows(), problem.problem.columns(), problem.constants, arrays};
    run_reference(problem.expanded, shape).value();
    std::vector<OracleResult> oracle = run_oracle(problem.bound, shape).value();
    for (const LargestError& error :
         largest_errors(problem.bound, oracle, std::span(arrays).subspan(problem.bound.operands.size()))) {
      EXPECT_TRUE(error.fine()) << line << ' ' << error.result << '[' << error.row << ',' << error.column << "] got "
                                << error.got << " want " << error.want << " tolerance " << error.tolerance;
      EXPECT_EQ(error.unknown, 0) << line;
    }
    return digest(buffers.results);
  };
  for (const char* direction : {"", " backward"})
    for (const char* options : {"", " x=bf16", " x=f16 gamma=f32 eps=1e-3", " gamma=none", " x=f64", " offset=1"})
      for (const char* shape : {"1x1", "7x257", "2x3x33", "300x5", "0x4"})
        run(std::string("rms_norm ") + shape + options + direction, rms_norm_text);
  for (const char* line : {"cross_entropy 5x541 target=i32", "cross_entropy 5x541 target=i32 x=bf16 backward",
                           "cross_entropy 4x33 target=i32 lse=none backward"})
    run(line, cross_entropy);
  EXPECT_EQ(run("rms_norm 7x257 x=bf16", rms_norm_text),
            run("rms_norm 7x257 x=bf16+3:300 y=bf16+1:259", rms_norm_text));
  EXPECT_NE(run("rms_norm 7x257 x=bf16", rms_norm_text), run("rms_norm 7x257 x=bf16 seed=1", rms_norm_text));
}

}  // namespace
}  // namespace trireme
