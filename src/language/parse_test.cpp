#include "language/parse.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ir/build.hpp"
#include "ir/verify.hpp"
#include "language/names.hpp"
#include "language/print.hpp"

namespace trireme {
namespace {

const std::string head = "f(x[i,j], w[j] = 1, r[i], eps = 1e-6, heads) -> (y[i,j])\n";

Program parsed(const std::string& text) {
  Result<Program> program = parse(text);
  EXPECT_TRUE(program) << (program ? "" : program.error().message);
  if (!program) return {};
  Status verified = verify(*program);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
  return std::move(*program);
}

std::string message_of(const std::string& text) {
  Result<Program> program = parse(text);
  return program ? "parsed" : program.error().message;
}

// The right side of y means the same as another one.
void same(const std::string& a, const std::string& b) {
  Program both = parsed("f(x[i,j], w[j], r[i], eps) -> (y[i,j], z[i,j])\ny = " + a + "\nz = " + b);
  EXPECT_EQ(both.results[0].value, both.results[1].value) << a << "   " << b;
}
void differ(const std::string& a, const std::string& b) {
  Program both = parsed("f(x[i,j], w[j], r[i], eps) -> (y[i,j], z[i,j])\ny = " + a + "\nz = " + b);
  EXPECT_NE(both.results[0].value, both.results[1].value) << a << "   " << b;
}

double number(const std::string& text) {
  Program program = parsed("f() -> (y[i,j])\ny = " + text);
  return as_number(program, program.results[0].value).value_or(-12345);
}

TEST(Parse, rms_norm) {
  Program program = parsed(
      "# a comment\n#: try 7x257\n"
      "rms_norm(x[i,j], gamma[j] = 1, eps = 1e-6, offset = 0) -> (y[i,j], rstd[i])\n"
      "    rstd = rsqrt(mean(x * x) + eps)\n"
      "    y    = x * rstd * (gamma + offset)\n");
  EXPECT_EQ(program.name, "rms_norm");
  ASSERT_EQ(program.operands.size(), 4u);
  EXPECT_FALSE(program.operands[1].constant);
  EXPECT_FALSE(program.operands[1].spread.row.present);
  EXPECT_TRUE(program.operands[1].spread.column.present);
  EXPECT_EQ(as_number(program, program.operands[1].fallback), 1.0);
  EXPECT_TRUE(program.operands[2].constant);
  EXPECT_EQ(as_number(program, program.operands[2].fallback), 1e-6);
  ASSERT_EQ(program.results.size(), 2u);
  const Node& y = program[program.results[0].value];
  EXPECT_EQ(y.op, Op::Mul);
  EXPECT_EQ(program[y.args[0]].args[1], program.results[1].value);  // rstd in y is the node itself
}

TEST(Parse, binding) {
  same("x + w * r", "x + (w * r)");
  same("x - w - r", "(x - w) - r");
  same("x / w * r", "(x / w) * r");
  same("-x * w", "(-x) * w");
  same("x - -w", "x - (-w)");
  differ("-(x * w)", "(-x) * w");
  differ("x + (w + r)", "x + w + r");
  same("select(x + 1 < w, 1, 2)", "select((x + 1) < w, 1, 2)");
  same("x + w", "w + x");
  differ("x - w", "w - x");
}

TEST(Parse, comparisons) {
  same("select(x > w, 1, 2)", "select(w < x, 1, 2)");
  same("select(x >= w, 1, 2)", "select(w <= x, 1, 2)");
  same("select(x != w, 1, 2)", "select(not(x == w), 1, 2)");
  same("select(and(x < 1, or(w < x, not(x < w))), 1, 2)", "select(and(1 > x, or(x > w, not(w > x))), 1, 2)");
}

TEST(Parse, numbers) {
  EXPECT_EQ(number("1"), 1);
  EXPECT_EQ(number("0.5"), 0.5);
  EXPECT_EQ(number(".5"), 0.5);
  EXPECT_EQ(number("5."), 5);
  EXPECT_EQ(number("1e-6"), 1e-6);
  EXPECT_EQ(number("1E+6"), 1e6);
  EXPECT_EQ(number("0x1.8p-3"), 0x1.8p-3);
  EXPECT_EQ(number("0X1P4"), 16);
  EXPECT_EQ(number("0xff"), 255);
  EXPECT_EQ(number("-3"), -3);
  EXPECT_EQ(number("inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(number("nan")));
  EXPECT_TRUE(std::isnan(number("-nan")));
  EXPECT_TRUE(std::signbit(number("-0")));
  EXPECT_EQ(number("5e-324"), 5e-324);
  differ("-(1)", "-1");  // a negated number; folding makes them one
}

TEST(Parse, lines_blanks_and_comments) {
  parsed("\xEF\xBB\xBF\r\n  f (  x [ i , j ] ,\n w[j]\n)->(y[i,j])# c\r\n\r\n\n y=(x\n\n+ # inside\n w)\r\n\n");
  parsed("f(x[i,j]) -> (y[i,j])\ny = x");
  parsed("gelu(x[i,j]) -> (y[i,j])\ny = x");  // a program may have a function's name
  parsed("f() -> (y[i,j])\ny = i + j * n");
}

TEST(Parse, spreads) {
  Program program = parsed(
      "f(x[i,j], a[], w[i % heads, j], c[(i / heads) % positions, j % (n / 2)], g[i % 4, j / pixels], "
      "s[i / positions], heads, positions = 3, pixels = 2) -> (y[i,j], d[i / heads % 2, j], e[], b[j])\n"
      "y = x * a + w * c - g / s\nd = colsum(y)\ne = colsum(y)\nb = colsum(1)");
  const Spread& c = program.operands[3].spread;
  EXPECT_EQ(program[c.row.divide].op, Op::Constant);
  EXPECT_EQ(program[c.row.divide].payload, 6);
  EXPECT_EQ(program[c.row.wrap].payload, 7);
  EXPECT_EQ(c.column.divide, no_node);
  EXPECT_EQ(program[c.column.wrap].op, Op::Div);
  const Spread& d = program.results[1].spread;
  EXPECT_EQ(program[d.row.divide].payload, 6);
  EXPECT_EQ(as_number(program, d.row.wrap), 2.0);
  EXPECT_EQ(program.results[1].value, program.results[2].value);  // one sum, landing on different entries
}

TEST(Parse, defaults) {
  Program program = parsed(
      "f(x[i,j], r[i] = rsqrt(mean(x * x) + eps), s[i] = ..., w[j] = -inf, eps = 1e-6) -> (y[i,j])\n"
      "t = x * r\ns = sum(t)\ny = x * s * w");
  EXPECT_EQ(program[program.operands[1].fallback].op, Op::Call);
  EXPECT_EQ(program[program.operands[2].fallback].op, Op::Sum);
  // Wherever its default stands, the name is the operand.
  const Node& y = program[program.results[0].value];
  EXPECT_EQ(program[program[y.args[0]].args[1]].op, Op::Operand);
}

TEST(Parse, bound_programs) {
  Program program = parsed(
      "f(x[i,j]: bf16, w[j]: f32 = 1, eps = 1e-6) -> (y[i,j]: f8e4m3, s[]: f64) in f64\n"
      "y = round_to(bits_shift_left(x, 63), bf16) + bits_or(bits_and(x, w), bits_add(x, w))\n"
      "s = colsum(bits_shift_right(x, 0))");
  EXPECT_EQ(program.compute, Type::F64);
  EXPECT_EQ(program.operands[0].type, Type::BF16);
  EXPECT_EQ(program.operands[2].type, std::nullopt);
  EXPECT_EQ(program.results[0].type, Type::F8E4M3);
}

// A name that is not followed by ( is never a function, wherever the value of that name stands.
TEST(Parse, values_may_be_called_as_composed_reductions) {
  Program program =
      parse(
          "f(x[i,j] = variance + softmax(logsumexp), variance = 2, logsumexp = 3) -> (y[i,j], softmax[i])\n"
          "softmax = variance(x) * variance\ny = softmax(x) * softmax\n")
          .value();
  EXPECT_EQ(program[program.operands[0].fallback].op, Op::Add);
  EXPECT_EQ(print(parse(print(program)).value()), print(program));
}

TEST(Parse, every_function_has_its_number_of_arguments) {
  for (std::string_view name : callable_names()) {
    Callable callable = *callable_named(name);
    if (callable.op != Op::Call) continue;
    std::string args = "x";
    for (int k = 1; k < callable.arity; ++k) args += ", x";
    parsed("f(x[i,j]) -> (y[i,j])\ny = " + std::string(name) + "(" + args + ")");
    EXPECT_NE(message_of("f(x[i,j]) -> (y[i,j])\ny = " + std::string(name) + "(" + args + ", x)"), "parsed");
    EXPECT_NE(message_of("f(x[i,j]) -> (y[i,j])\ny = " + std::string(name) + "()"), "parsed");
  }
}

TEST(Parse, names_of_lines_are_kept) {
  Program program = parsed("f(x[i,j]) -> (y[i,j])\nsquares = x * x\nagain = squares\nhalf = 0.5\ny = squares * half");
  ASSERT_EQ(program.names().size(), 1u);  // leaves keep their own
  EXPECT_EQ(program.names()[0].second, "squares");
}

TEST(Parse, sides_that_may_change_places_are_one_node) {
  Program program = parsed("f(a[i,j], b[i,j]) -> (y[i,j], z[i,j])\ny = (a + b) * (b + a)\nz = min(b, a) - min(a, b)");
  const Node &product = program[program.results[0].value], &difference = program[program.results[1].value];
  EXPECT_EQ(product.args[0], product.args[1]);
  EXPECT_EQ(difference.args[0], difference.args[1]);
  const Node& least = program[difference.args[0]];  // the first spelling is kept
  EXPECT_EQ(program.operands[program[least.args[0]].payload].name, "b");
}

TEST(Limits, text) {
  EXPECT_EQ(message_of(std::string(max_text_bytes, '\n')),
            "2:1: expected the program's name, found end of text\n  \n  ^");
  EXPECT_EQ(message_of(std::string(max_text_bytes + 1, '\n')),
            "1:1: the text has 1048577 bytes; at most 1048576 are read");
}

TEST(Limits, depth) {
  auto nested = [](const std::string& open, const std::string& close, int depth) {
    std::string text = head + "y = ";
    for (int k = 0; k < depth; ++k) text += open;
    text += "x";
    for (int k = 0; k < depth; ++k) text += close;
    return message_of(text).substr(0, message_of(text).find('\n'));
  };
  EXPECT_EQ(nested("(", ")", 255), "parsed");
  EXPECT_EQ(nested("(", ")", 256), "2:261: this is nested deeper than 256");
  EXPECT_EQ(nested("-", "", 255), "parsed");
  EXPECT_EQ(nested("-", "", 256), "2:260: this is nested deeper than 256");
  EXPECT_EQ(nested("abs(", ")", 255), "parsed");
  EXPECT_EQ(nested("abs(", ")", 256), "2:1029: this is nested deeper than 256");
}

TEST(Limits, nodes) {
  auto chain = [](int additions) {
    std::string text = head + "y = x";
    for (int k = 0; k < additions; ++k) text += "+x";
    return message_of(text).substr(0, message_of(text).find('\n'));
  };
  // Beside the additions there are x and the defaults of w and eps.
  EXPECT_EQ(chain(static_cast<int>(max_nodes) - 3), "parsed");
  EXPECT_EQ(chain(static_cast<int>(max_nodes) - 2), "2:131074: the program has more than 65536 nodes");
}

TEST(Limits, names) {
  std::string name(max_name_bytes, 'a');
  parsed("f(" + name + "[i,j]) -> (y[i,j])\ny = " + name);
  EXPECT_NE(message_of("f(" + name + "a[i,j]) -> (y[i,j])\ny = 1").find("at most 128 characters"), std::string::npos);
}

// tests/errors/language.txt: a title, a wrong program, and the answer.
TEST(Parse, wrong_programs) {
  const std::string path = std::string(TRIREME_SOURCE_DIR) + "/tests/errors/language.txt";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::string line, title, program, answer, blessed;
  enum { Head, InProgram, InAnswer } part = Head;
  auto finish = [&] {
    if (part == Head) return;
    if (!program.empty()) program.pop_back();  // the last line break belongs to the table
    std::string said = message_of(program) + "\n";
    blessed += "==== " + title + "\n" + program + "\n----\n" + said;
    if (!std::getenv("BLESS")) {
      EXPECT_EQ(said, answer) << title << "\n" << program;
    }
    program = answer = "";
  };
  while (std::getline(file, line)) {
    if (line.starts_with("==== ")) {
      finish();
      title = line.substr(5);
      part = InProgram;
    } else if (part == InProgram && line == "----") {
      part = InAnswer;
    } else if (part == Head) {
      blessed += line + "\n";
    } else {
      (part == InProgram ? program : answer) += line + "\n";
    }
  }
  finish();
  file.close();
  if (std::getenv("BLESS")) std::ofstream(path) << blessed;
}

}  // namespace
}  // namespace trireme
