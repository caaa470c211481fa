#include "language/print.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/build.hpp"
#include "ir/verify.hpp"
#include "language/parse.hpp"
#include "language/print_expression.hpp"
#include "math/functions.hpp"

namespace trireme {
namespace {

std::string printed(const std::string& text) {
  Result<Program> program = parse(text);
  EXPECT_TRUE(program) << (program ? "" : program.error().message);
  return program ? print(*program) : "";
}

void stays(const std::string& text) { EXPECT_EQ(printed(text), text); }
void becomes(const std::string& text, const std::string& expected) {
  EXPECT_EQ(printed(text), expected);
  stays(expected);
}

// One expression, which must stay as it is written.
void expression_stays(const std::string& expression) {
  stays("f(x[i,j], w[j], r[i], eps) -> (y[i,j])\n    y = " + expression + "\n");
}
void bound_expression_stays(const std::string& expression) {
  stays("f(x[i,j]: bf16, eps) -> (y[i,j]: f32) in f32\n    y = " + expression + "\n");
}
void expression_becomes(const std::string& expression, const std::string& expected) {
  std::string head = "f(x[i,j], w[j], r[i], eps) -> (y[i,j])\n    y = ";
  becomes(head + expression + "\n", head + expected + "\n");
}

// A program made by hand, which must verify, and read back as it prints.
void prints(const Program& program, const std::string& expected) {
  Status verified = verify(program);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
  EXPECT_EQ(print(program), expected);
  stays(expected);
}

Program small() {
  Program program;
  program.name = "f";
  program.operands = {{.name = "x", .spread = {{true}, {true}}}, {.name = "t1", .constant = true}};
  program.results = {{.name = "y", .spread = {{true}, {true}}}};
  return program;
}

TEST(Print, rms_norm) {
  stays(
      "rms_norm(x[i,j], gamma[j] = 1, eps = 1e-6, offset = 0) -> (y[i,j], rstd[i])\n"
      "    rstd = rsqrt(mean(x * x) + eps)\n"
      "    y    = x * rstd * (gamma + offset)\n");
}

TEST(Print, parentheses_where_needed) {
  for (const char* each : {"x + w - r",
                           "x - (w + r)",
                           "x - (w - r)",
                           "x + (w + r)",
                           "x * w / r",
                           "x / (w * r)",
                           "x * (w + r)",
                           "-x",
                           "-(-x)",
                           "-(x + w)",
                           "-(x * w)",
                           "-x * w",
                           "x * -w",
                           "x - -w",
                           "x - -1",
                           "-(1)",
                           "-(-1)",
                           "-1",
                           "-1 * x",
                           "x * -1",
                           "x / (w / r)",
                           "-rsqrt(x)",
                           "(x + w) * -(x - w)"})
    expression_stays(each);
  expression_becomes("((x) + (w * r))", "x + w * r");
  expression_becomes("--x", "-(-x)");
  expression_becomes("- - 1", "-(-1)");
}

TEST(Print, conditions) {
  for (const char* each :
       {"select(x < w, 1, 0)", "select(x <= w, x, w)", "select(x == w, 1, 0)", "select(x != w, 1, 0)",
        "select(not(x < w), 1, 0)", "select(and(x < w, or(r == 1, not(and(i < j, x != 0)))), 1, 0)",
        "select(x + 1 < w * 2, 1, 0)", "select(not(x != w), 1, 0)"})
    expression_stays(each);
  expression_becomes("select(x > w, 1, 0)", "select(w < x, 1, 0)");
  expression_becomes("select(x >= w, 1, 0)", "select(w <= x, 1, 0)");
  becomes("f(x[i,j]) -> (y[i,j])\nc = x == 1\ny = select(c, 1, select(x != 1, 2, 3))\n",
          "f(x[i,j]) -> (y[i,j])\n    c = x == 1\n    y = select(c, 1, select(not(c), 2, 3))\n");
}

TEST(Print, calls) {
  for (const char* each : {"min(x, w)",        "max(x, 1)",
                           "abs(x)",           "sqrt(x)",
                           "fma(x, w, r)",     "floor(x)",
                           "round(x)",         "sum(x)",
                           "mean(x)",          "amax(x)",
                           "amin(x)",          "rotate(x, 3)",
                           "rotate(x, n / 2)", "rotate(x, n - eps)",
                           "stop_gradient(x)", "cast(x, y)",
                           "cast(x * 2, w)",   "largest(y)",
                           "largest(x) * x",   "i + j * n"})
    expression_stays(each);
  for (const Function& function : functions()) {
    std::string args = "x";
    for (int k = 1; k < function.arity; ++k) args += ", x";
    expression_stays(std::string(function.name) + "(" + args + ")");
  }
  for (const char* each : {"bits_add(x, 1)", "bits_and(x, eps)", "bits_or(x, 2)", "bits_shift_left(x, 23)",
                           "bits_shift_right(x, 0)", "round_to(x, bf16)", "round_to(x + 1, f8e4m3)"})
    bound_expression_stays(each);
}

TEST(Print, numbers) {
  const std::pair<double, const char*> numbers[] = {{0, "0"},
                                                    {-0.0, "-0"},
                                                    {1, "1"},
                                                    {-1, "-1"},
                                                    {0.5, "0.5"},
                                                    {1e-6, "1e-6"},
                                                    {1e20, "1e20"},
                                                    {4096, "4096"},
                                                    {0.1, "0.1"},
                                                    {0.1f, "0.10000000149011612"},
                                                    {65504, "65504"},
                                                    {5e-324, "5e-324"},
                                                    {1e100, "1e100"},
                                                    {1.4426950408889634, "1.4426950408889634"},
                                                    {0x1.fffffffffffffp1023, "1.7976931348623157e308"},
                                                    {std::numeric_limits<double>::infinity(), "inf"},
                                                    {-std::numeric_limits<double>::infinity(), "-inf"},
                                                    {std::nan(""), "nan"}};
  for (auto [value, text] : numbers) {
    EXPECT_EQ(number_text(value), text);
    expression_stays(text);
  }
  expression_becomes("0x1.8p-3", "0.1875");
  expression_becomes("100.0", "100");
}

TEST(Print, signatures) {
  stays(
      "rope(x[i,j], w[i % heads, j], cos[(i / heads) % positions, j % (n / 2)], scale[] = 2, g[i % 4, j / pixels],\n"
      "        s[i / positions] = -inf, h[(i / (n / 2 / heads)) % (n / (heads / 2))], heads, positions = 3, pixels) -> "
      "(\n"
      "        y[i,j], dw[i % heads, j], total[], dj[j])\n"
      "    y     = x * w * cos * scale * g * s * h\n"
      "    dw    = colsum(y)\n"
      "    dj    = colsum(x)\n"
      "    total = colsum(y)\n");
  stays("f() -> (y[i,j])\n    y = i + j\n");
  stays(
      "f(x[i,j]: bf16, w[i % 4, j]: i8 = 1, eps = 1e-6) -> (y[i,j]: f8e5m2, s[i]: f64) in f64\n"
      "    s = sum(x) + eps\n"
      "    y = x * w * s\n");
}

TEST(Print, lines) {
  // Names that lines were given stay, shared values get names, aliases and unused lines go.
  becomes(
      "f(x[i,j]) -> (y[i,j])\nsquares = x * x\nalias = squares\nunused = x - 1\n"
      "y = sum(squares) + abs(x + 2) * (x + 2) + alias\n",
      "f(x[i,j]) -> (y[i,j])\n"
      "    squares = x * x\n"
      "    t1      = x + 2\n"
      "    y       = sum(squares) + abs(t1) * t1 + squares\n");
  // Results that are leaves, or another's value, stand last.
  becomes("f(x[i,j]) -> (a[i,j], b[i,j], c[i,j], d[i,j])\na = x\nd = 0\nc = x * x\nb = c\n",
          "f(x[i,j]) -> (a[i,j], b[i,j], c[i,j], d[i,j])\n"
          "    b = x * x\n"
          "    a = x\n"
          "    c = b\n"
          "    d = 0\n");
  // Two results of one column sum are each written out.
  stays("f(x[i,j]) -> (a[j], b[])\n    t1 = x * x\n    a  = colsum(t1)\n    b  = colsum(t1)\n");
}

TEST(Print, defaults_that_recompute) {
  // A value of the signature that lines use as well is the first line.
  becomes(
      "f(x[i,j], r[i] = rsqrt(mean(x * x) + eps), eps = 1e-6) -> (y[i,j])\n"
      "t = x + r\ny = sum(x * x) + t * (x * x) * t\n",
      "f(x[i,j], r[i] = rsqrt(mean(x * x) + eps), eps = 1e-6) -> (y[i,j])\n"
      "    t1 = x * x\n"
      "    t  = x + r\n"
      "    y  = sum(t1) + t * t1 * t\n");
  // What is too long for the signature becomes a line.
  std::string power = "x";
  for (int k = 0; k < 20; ++k) power = "x * " + power;
  std::string end = " + " + power + "\n    y = x * r\n";
  stays("f(x[i,j], r[i,j] = ...) -> (y[i,j])\n    r = 1" + end);
  becomes("f(x[i,j], r[i,j] = 1 + " + power + ") -> (y[i,j])\n    y = x * r\n",
          "f(x[i,j], r[i,j] = ...) -> (y[i,j])\n    r = 1" + end);
}

TEST(Print, made_up_names_avoid_others) {
  Program program = small();  // its constant is called t1
  Formula x{&program, program.add(Op::Operand, {}, 0)}, t1{&program, program.add(Op::Constant, {}, 1)};
  Formula a = x + t1, b = a * a, c = b * b, d = c * c;
  Formula e = d * d;
  program.give_name(a.id, "t2");
  program.give_name(b.id, "t2");    // taken
  program.give_name(c.id, "sqrt");  // reserved
  program.give_name(d.id, "7 up");  // no name
  program.results[0].value = e.id;
  prints(program,
         "f(x[i,j], t1) -> (y[i,j])\n"
         "    t2 = x + t1\n"
         "    t3 = t2 * t2\n"
         "    t4 = t3 * t3\n"
         "    t5 = t4 * t4\n"
         "    y  = t5 * t5\n");
}

TEST(Print, deep_graphs_are_cut_into_lines) {
  for (Op op : {Op::Sub, Op::Neg, Op::Call}) {
    Program program = small();
    Formula x{&program, program.add(Op::Operand, {}, 0)}, value = x;
    for (int k = 0; k < 20000; ++k) {
      if (op == Op::Sub) value = k % 2 ? value - x : x - value;
      if (op == Op::Neg) value = -value;
      if (op == Op::Call) value = call("rsqrt", {value});
    }
    program.results[0].value = value.id;
    ASSERT_TRUE(verify(program));
    std::string text = print(program);
    stays(text);
    std::size_t longest = 0, at = 0;
    for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      longest = std::max(longest, end - at);
    EXPECT_LE(longest, 120u);
  }
}

}  // namespace
}  // namespace trireme
