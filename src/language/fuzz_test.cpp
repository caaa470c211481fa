// Fixed seeds, about two seconds; LONG=1 goes on for minutes. A failure names the seed or shows the text.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "ir/verify.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "language/random_program.hpp"

namespace trireme {
namespace {

int rounds(int usual) { return std::getenv("LONG") ? 200 * usual : usual; }

RandomProgram options_of(std::uint64_t seed) {
  RandomProgram options{.seed = seed, .size = static_cast<int>(seed % 97)};
  options.columns_multiple = seed % 3 == 0 ? 12 : 1;
  options.bound = seed % 2 == 0;
  options.bits = seed % 4 == 0;
  options.odd_names = seed % 5 < 2;
  options.picks = seed % 3 == 1;
  options.seeds = seed % 3 == 2;
  if (seed % 200 == 7) options.size = 3000;
  return options;
}

// Adds what `program` computes to `joint`, where equal values of different programs become equal ids, and lists them.
std::vector<NodeId> meaning(const Program& program, Program& joint) {
  std::vector<bool> wanted = reachable(program);
  std::vector<NodeId> moved(program.size(), no_node), out;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!wanted[id]) continue;
    const Node& node = program[id];
    NodeId args[3];
    for (int k = 0; k < node.arity; ++k) args[k] = moved[node.args[k]];
    std::span<const NodeId> used(args, node.arity);
    bool symbol = names_symbol(node.op);
    moved[id] =
        symbol ? joint.symbol(node.op, program.symbols[node.payload], used) : joint.add(node.op, used, node.payload);
  }
  auto list = [&](NodeId id) { out.push_back(id == no_node ? no_node : moved[id]); };
  auto list_spread = [&](const Spread& spread) {
    for (const Axis* axis : {&spread.row, &spread.column}) {
      out.push_back(axis->present);
      list(axis->divide);
      list(axis->wrap);
    }
  };
  for (const Operand& each : program.operands) list_spread(each.spread), list(each.fallback);
  for (const Output& each : program.results) list_spread(each.spread), list(each.value);
  return out;
}

// A printer that loses parentheses could still agree with itself.
void expect_same_meaning(const Program& a, const Program& b, const std::string& text) {
  Program joint;
  joint.operands = a.operands;
  ASSERT_EQ(meaning(a, joint), meaning(b, joint)) << text;
  ASSERT_EQ(a.operands.size(), b.operands.size());
  for (std::size_t k = 0; k < a.operands.size(); ++k) {
    ASSERT_EQ(a.operands[k].name, b.operands[k].name) << text;
    ASSERT_EQ(a.operands[k].type, b.operands[k].type) << text;
  }
  for (std::size_t k = 0; k < a.results.size(); ++k) {
    ASSERT_EQ(a.results[k].name, b.results[k].name) << text;
    ASSERT_EQ(a.results[k].type, b.results[k].type) << text;
  }
  ASSERT_EQ(a.compute, b.compute) << text;
}

// Whatever text comes, the parser answers: with a verified program that prints and reads back, or with an error that
// says where.
void answer(const std::string& text) {
  Result<Program> program = parse(text);
  if (!program) {
    ASSERT_EQ(program.error().code, Code::InvalidProgram) << text;
    ASSERT_NE(program.error().message.find("^"), std::string::npos) << text;
    return;
  }
  Status verified = verify(*program);
  ASSERT_TRUE(verified) << verified.error().message << "\n" << text;
  std::string printed = print(*program);
  Result<Program> again = parse(printed);
  ASSERT_TRUE(again) << again.error().message << "\n" << printed;
  ASSERT_EQ(print(*again), printed) << text;
  expect_same_meaning(*program, *again, text);
}

TEST(Fuzz, random_programs_print_parse_print) {
  for (int seed = 0; seed < rounds(1500); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program = random_program(options_of(seed));
    Status verified = verify(program);
    ASSERT_TRUE(verified) << verified.error().message;
    std::string text = print(program);
    Result<Program> parsed = parse(text);
    ASSERT_TRUE(parsed) << parsed.error().message << "\n" << text;
    ASSERT_TRUE(verify(*parsed)) << text;
    ASSERT_EQ(print(*parsed), text);
    expect_same_meaning(program, *parsed, text);
    if (HasFatalFailure()) return;
  }
}

TEST(Fuzz, options_take_parts_of_the_language_away) {
  for (int seed = 0; seed < rounds(100); ++seed) {
    RandomProgram options{.seed = static_cast<std::uint64_t>(seed)};
    options.reductions = options.column_sums = options.divided = options.conditions = options.functions = false;
    options.indices = options.rotations = options.casts = options.defaults = false;
    Program program = random_program(options);
    ASSERT_TRUE(verify(program));
    for (NodeId id = 0; id < program.size(); ++id) {
      Op op = program[id].op;
      ASSERT_FALSE(is_row_reduction(op) || is_condition(op) || is_column_reduction(op) || op == Op::Call ||
                   op == Op::RowIndex || op == Op::Rotate || op == Op::Cast)
          << print(program);
    }
  }
}

TEST(Fuzz, mutated_programs) {
  std::mt19937_64 dice(1);
  const std::string pieces[] = {"(",  ")",   "[",  "]",     ",",        "=",       "\n",   "-",    "/",      "%",
                                "<=", "!=",  "->", "in",    "f32",      ": bf16",  "...",  "#",    "colsum", "x1",
                                "y1", "sum", "n",  "1e999", "0x1.8p-3", "select(", "inf",  "i",    "j",      "not(",
                                "t1", "2x",  "\t", "\xC3",  "cast(x1,", "\r\n",    "((((", "----", "bits_",  "é"};
  for (int round = 0; round < rounds(6000); ++round) {
    RandomProgram options = options_of(dice() % 1000);
    options.size %= 25;
    std::string text = print(random_program(options));
    for (int change = 1 + static_cast<int>(dice() % 4); change > 0 && !text.empty(); --change) {
      std::size_t at = dice() % text.size(), length = dice() % std::min<std::size_t>(text.size() - at + 1, 12);
      switch (dice() % 4) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, pieces[dice() % std::size(pieces)]); break;
        case 2: text.replace(at, length, pieces[dice() % std::size(pieces)]); break;
        default: text.insert(dice() % text.size(), text.substr(at, length)); break;
      }
    }
    answer(text);
    if (HasFatalFailure()) return;
  }
}

TEST(Fuzz, junk) {
  std::mt19937_64 dice(2);
  for (int round = 0; round < rounds(6000); ++round) {
    std::string text(dice() % 200, ' ');
    for (char& c : text) c = static_cast<char>(round % 2 ? dice() : 32 + dice() % 96);
    if (round % 3 == 0) text = "f(x[i,j]) -> (y[i,j])\ny = " + text;
    answer(text);
    if (HasFatalFailure()) return;
  }
}

// The largest texts of each hostile kind: a second is the promise.
TEST(Fuzz, hostile_texts_are_answered_in_time) {
  auto repeated = [](std::string_view piece) {
    std::string text;
    while (text.size() + piece.size() < max_text_bytes - 100) text += piece;
    return text;
  };
  auto numbered = [](auto&& line) {
    std::string text;
    for (int k = 0; text.size() < max_text_bytes - 200; ++k) text += line(std::to_string(k));
    return text;
  };
  std::string head = "f(x[i,j]) -> (y[i,j])\n";
  std::string texts[] = {
      repeated("("),
      repeated("\n"),
      repeated("#\n"),
      "f(" + numbered([](std::string k) { return "a" + k + "[i,j], "; }),
      "f(" + numbered([](std::string k) { return "a" + k + "[] = ..., "; }) + "z[]) -> (y[i,j])\n",
      "f(x[i / " + repeated("(") + "",
      "f(x[i / (" + repeated("n/") + "n), j]) -> (y[i,j])\ny=x",
      "f(x[i,j] = " + repeated("x+") + "1) -> (y[i,j])\ny=x",
      "f(x[i,j] = " + repeated("1+") + "1) -> (y[i,j])\ny=x",
      head + "y = " + repeated("("),
      head + "y = " + repeated("-") + "x",
      head + "y = x" + repeated("+x"),
      head + "y = x" + repeated("*x+1"),
      head + "y = " + repeated("abs("),
      head + "y = x + " + std::string(max_text_bytes / 2, 'a'),
      head + "y = x" + repeated(" "),
      head + numbered([](std::string k) { return "a" + k + "=x*" + k + "\n"; }) + "y=x",
      head + numbered([](std::string k) { return "a" + k + "=x\n"; }) + "y=zzz",
      head + "a0 = x\n" +
          [] {
            std::string text;
            for (int k = 1; k < 30000; ++k) text += "a" + std::to_string(k) + "=a" + std::to_string(k - 1) + "+x\n";
            return text + "y=a29999";
          }(),
      head + "a0 = x\n" +
          [] {  // a tree of 2^20000 leaves
            std::string text;
            for (int k = 1; k < 20000; ++k)
              text += "a" + std::to_string(k) + "=a" + std::to_string(k - 1) + "*a" + std::to_string(k - 1) + "\n";
            return text + "y=a19999";
          }(),
      "f(x[i,j], r[i,j] = ...) -> (y[i,j])\na0 = x\n" +
          [] {
            std::string text;
            for (int k = 1; k < 20000; ++k)
              text += "a" + std::to_string(k) + "=a" + std::to_string(k - 1) + "*a" + std::to_string(k - 1) + "\n";
            return text + "r=a19999\ny=r";
          }(),
  };
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 100));
    auto begin = std::chrono::steady_clock::now();
    Result<Program> program = parse(text);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    // Generous, for machines that are busy or run this under a sanitizer; a quadratic parser takes minutes.
    EXPECT_LT(taken.count(), 10);
    if (std::getenv("LONG")) printf("%.3f s  %s\n", taken.count(), program ? "parsed" : "refused");
    if (program) answer(text);
  }
}

}  // namespace
}  // namespace trireme
