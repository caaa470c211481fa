#include "plan/gradient_check.hpp"

#include <gtest/gtest.h>

#include "language/parse.hpp"
#include "language/print.hpp"
#include "passes/passes.hpp"
#include "plan/ops.hpp"
#include "problem/remarks.hpp"

namespace trireme {
namespace {

GradientCheck checked(const std::string& line, std::string_view text, const Program* backward = nullptr) {
  const Result<GradientCheck> check = check_gradient(parse_problem(line).value(), text, backward);
  EXPECT_TRUE(check) << line << ": " << check.error().message;
  return check ? *check : GradientCheck{"failed"};
}

void expect_right(const std::string& line, std::string_view text) {
  const GradientCheck check = checked(line, text);
  EXPECT_EQ(check.skipped, "") << line;
  EXPECT_TRUE(check.fine()) << line << ": " << check.derivative << " by differences " << check.difference << " within "
                            << check.bound;
}

std::string_view text_of(std::string_view name) {
  for (const OperatorText& each : operator_texts())
    if (each.name == name) return each.text;
  return {};
}

TEST(GradientCheck, right_derivatives_pass) {
  for (const char* line : {"rms_norm 7x257 backward", "rms_norm 7x257 x=bf16 gamma=none rstd=none offset=1 backward",
                           "cross_entropy 5x541 target=i32 backward gradients=loss,lse", "softmax 33x100 backward",
                           "layer_norm 2x3x64 axes=2 backward seed=5", "rms_norm 0x5 backward"})
    expect_right(line, text_of(std::string_view(line).substr(0, std::string_view(line).find(' '))));
  expect_right("f 9x31 backward",
               "f(x[i,j], w[i % 2, j / 3], s[]) -> (y[i,j], m[j])\ny = x * w + s\nm = colsum(sigmoid(x) * w)");
  expect_right("f 9x31 backward", "f(x[i,j], t[i], k[i]) -> (y[i,j])\ny = rotate(x, 7) * exp(t) + amax(x, j / 4)");
}

// Samples of what picks rows are rows, in the forward alone where only a result is picked.
TEST(GradientCheck, picked_results) {
  for (const char* shape : {"1x1", "3x4", "9x33"})
    expect_right(std::string("f ") + shape + " k=i32 backward",
                 "f(x[i,j], k[i]) -> (y[i,j], z[k,j])\ny = k * x\nz = 1");
  expect_right("f 2x3 k=i32 dz.rows=5 backward", "f(x[i,j], k[i]) -> (z[k,j], v[j])\nz = 1\nv = colsum(x)");
}

// What stop_gradient holds does not move, and what is rounded to storage passes its gradient straight through.
TEST(GradientCheck, held_values_and_types) {
  // A picking operand stays an integer; what is rounded to its type has the slope of what is not.
  expect_right("f 5x7 k=i32 backward", "f(x[i,j], k[i]) -> (y[i,j], z[k,j])\ny = cast(x * 3, k)\nz = 1");
  expect_right("f 3x4 backward", "f(x[i,j]) -> (y[i,j])\ny = x * stop_gradient(x)");
  expect_right("f 5x33 backward",
               "f(x[i,j], s[]) -> (y[i,j], m[i, j / 4])\nm = stop_gradient(amax(x, j / 4)) * sum(x, j / 4)\n"
               "y = x * stop_gradient(s) * stop_gradient(sum(x)) + m");
  expect_right("rms_norm_quant 7x257 q=f8e4m3 backward", text_of("rms_norm_quant"));
  expect_right("rms_norm_quant 7x257 q=f8e4m3 dq=none backward gradients=scale,rstd", text_of("rms_norm_quant"));
}

// Of every operator, at each of its problems.
TEST(GradientCheck, operators) {
  int looked_at = 0;
  for (const OperatorText& each : operator_texts()) {
    const Remarks remarks = parse_remarks(each.text).value();
    for (const std::string& problem : remarks.tries) {
      const std::string line = std::string(each.name) + " " + problem + " backward";
      const GradientCheck check = checked(line, each.text);
      EXPECT_TRUE(check.fine()) << line << ": " << check.derivative << " by differences " << check.difference
                                << " within " << check.bound;
      if (check.skipped.empty()) ++looked_at;
      else EXPECT_TRUE(line == "embedding 33x1000 table=f16 scale=none table.rows=5 backward") << line << check.skipped;
    }
  }
  EXPECT_GT(looked_at, 140);
}

TEST(GradientCheck, what_it_says_nothing_of) {
  EXPECT_NE(checked("f 3x4 x=i32 backward", "f(x[i,j]) -> (y[i,j])\ny = x * x").skipped, "");
  EXPECT_NE(checked("rms_norm 4096x4096 backward", text_of("rms_norm")).skipped, "");
  // Integers stand on edges themselves: the slope is that of one side, differences have the mean of both.
  const std::string stepped = "#: range x -1..n+2 integer\nf(x[i,j]) -> (y[i,j])\n    y = min(x, 2)\n";
  EXPECT_NE(checked("f 2x2 backward", stepped).skipped, "");
  EXPECT_EQ(checked("f 2x2 backward", stepped.substr(stepped.find('f'))).skipped, "");
}

// A term left out, a sign, a factor, a neighbour's value: none comes within a hundred times the bound.
TEST(GradientCheck, wrong_derivatives_fail) {
  const std::string_view text = "f(x[i,j], w[j]) -> (y[i,j], r[i])\nr = rsqrt(mean(x * x) + 1e-6)\ny = x * r * w";
  const std::string head =
      "f_backward(dy[i,j] = 0, x[i,j], w[j], r[i] = rsqrt(mean(x * x) + 1e-6)) -> (dx[i,j], dw[j])\n"
      "  h = x * r\n  g = dy * w\n";
  const std::string right = "  dx = r * (g - h * mean(g * h))\n  dw = colsum(dy * h)\n";
  auto check = [&](const std::string& lines, const char* line) {
    const Program backward = parse(head + lines).value();
    return checked(line, text, &backward);
  };
  for (const char* line : {"f 7x257 backward", "f 1x3 backward", "f 300x31 backward"}) {
    EXPECT_TRUE(check(right, line).fine()) << line;
    for (const char* wrong :
         {"  dx = r * g\n  dw = colsum(dy * h)\n", "  dx = r * (g + h * mean(g * h))\n  dw = colsum(dy * h)\n",
          "  dx = r * (g - h * mean(g * h))\n  dw = colsum(dy * h * 1.0001)\n",
          "  dx = r * (g - h * mean(g * h))\n  dw = colsum(dy * rotate(h, 1))\n",
          "  dx = r * (g - h * mean(g * h)) * 0\n  dw = colsum(dy * h * 0)\n"}) {
      const GradientCheck found = check(wrong, line);
      EXPECT_EQ(found.skipped, "");
      EXPECT_GT(found.error(), 1e2 * found.bound) << line << '\n' << wrong;
    }
  }
}

// The gradient flows on into a default where the operand is absent; the backward of a call that has it does not do
// that.
TEST(GradientCheck, fault_51_defaults) {
  const std::string_view text = "f(x[i,j], s[i] = mean(x)) -> (y[i,j])\ny = x * s";
  expect_right("f 5x33 backward", text);
  expect_right("f 5x33 s=none backward", text);
  const Program of_given = differentiate(parse(text).value()).value();
  EXPECT_TRUE(checked("f 5x33 backward", text, &of_given).fine());
  EXPECT_FALSE(checked("f 5x33 s=none backward", text, &of_given).fine());
}

}  // namespace
}  // namespace trireme
