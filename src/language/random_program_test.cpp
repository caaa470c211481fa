// Random programs hold the whole language: whatever docs/language.md has, a sample of fixed seeds has too. What joins
// the tables of operations and functions is asked for here by itself.
#include "language/random_program.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ir/index_arithmetic.hpp"
#include "ir/integers.hpp"
#include "ir/verify.hpp"
#include "language/names.hpp"
#include "language/print.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "support/hash.hpp"

namespace trireme {
namespace {

class Constructs {
 public:
  void count(const Program& program) {
    program_ = &program;
    amounts_.clear();
    std::vector<bool> wanted = reachable(program);
    for (NodeId id = 0; id < program.size(); ++id)
      if (wanted[id]) count_node(program[id]);
    if (amounts_.size() > 1) found_.insert("several amounts of rotations");
    for (const Operand& operand : program.operands) count_operand(operand);
    for (const Output& result : program.results) {
      std::string spread = count_spread("result", result.spread);
      if (is_column_reduction(program[result.value].op))
        found_.insert(std::string(facts(program[result.value].op).name) + " into " + spread);
    }
    if (print(program).find(" = ...") != std::string::npos) found_.insert("a default left to a line");
  }

  const std::set<std::string>& found() const { return found_; }

 private:
  static std::string kind(const Program& program, NodeId id) {
    const Node& node = program[id];
    if (node.op == Op::Operand) return "an i32 operand";
    if (node.op == Op::Rotate) return "a rotated leaf";
    return std::string(facts(node.op).name);
  }

  void count_node(const Node& node) {
    if (node.op == Op::Call) found_.insert(std::string(functions()[node.payload].name));
    else if (node.op == Op::Reduce || node.op == Op::ReduceSpread)
      found_.insert(std::string(reductions()[node.payload].name));
    else found_.insert(named(node.op));
    if (node.op == Op::Not && (*program_)[node.args[0]].op == Op::Equal) found_.insert("!=");
    if (compares_integers(*program_, node))
      for (NodeId side : node) found_.insert(named(node.op) + " of integers, one " + kind(*program_, side));
    if (node.op == Op::Rotate) count_rotation(node);
  }

  void count_rotation(const Node& node) {
    amounts_.insert(node.args[1]);
    count_amount(node.args[1]);
    double constants[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    auto value = index_value(*program_, node.args[1], {60, constants}, a_rotation);
    if (value && *value) found_.insert(**value < 0 ? "rotated back" : **value > 60 ? "rotated beyond n" : "rotated on");
    for (NodeId below : (*program_)[node.args[0]])
      if ((*program_)[node.args[0]].op == Op::Rotate || (*program_)[below].op == Op::Rotate)
        found_.insert("a rotation inside a rotation");
  }
  void count_amount(NodeId id) {
    found_.insert("rotated by " + named((*program_)[id].op));
    for (NodeId arg : (*program_)[id]) count_amount(arg);
  }

  void count_operand(const Operand& operand) {
    std::string what = operand.constant ? "a constant" : "an operand";
    if (operand.fallback == no_node) found_.insert(what + " without a default");
    else
      found_.insert(what + ((*program_)[operand.fallback].op == Op::Number ? " with a number" : " with an expression"));
    if (!operand.constant) count_spread("operand", operand.spread);
  }

  std::string divisor(NodeId id) const {
    const Node& node = (*program_)[id];
    if (node.op != Op::Div) return named(node.op);
    bool of_n = false;
    for (NodeId arg : node) of_n = of_n || (*program_)[arg].op == Op::ColumnCount;
    return of_n ? "a quotient of n" : "a quotient";
  }

  // Which indices there are, as "[i / a, j % b]" says it, and what they are divided and wrapped by.
  std::string count_spread(const std::string& what, const Spread& spread) {
    auto form = [&](const Axis& axis, const std::string& index) {
      if (!axis.present) return std::string();
      for (NodeId id : {axis.divide, axis.wrap})
        if (id != no_node)
          found_.insert(what + ": " + index + (id == axis.divide ? " divided" : " wrapped") + " by " + divisor(id));
      return index + (axis.divide != no_node ? " / a" : "") + (axis.wrap != no_node ? " % b" : "");
    };
    std::string row = form(spread.row, "i"), column = form(spread.column, "j");
    std::string shown = "[" + row + (row.empty() || column.empty() ? "" : ", ") + column + "]";
    found_.insert(what + shown);
    return shown;
  }

  static std::string named(Op op) { return op == Op::Neg ? "unary -" : std::string(facts(op).name); }

  const Program* program_ = nullptr;
  std::set<std::string> found_;
  std::set<NodeId> amounts_;
};

std::set<std::string> wanted_constructs() {
  std::set<std::string> wanted;
  for (std::string_view name : callable_names()) wanted.emplace(name);
  for (const char* each : {"number",
                           "constant",
                           "operand",
                           "i",
                           "j",
                           "n",
                           "+",
                           "-",
                           "*",
                           "/",
                           "unary -",
                           "!=",
                           "several amounts of rotations",
                           "a rotation inside a rotation",
                           "rotated on",
                           "rotated back",
                           "rotated beyond n",
                           "a default left to a line",
                           "a constant without a default",
                           "a constant with a number",
                           "an operand without a default",
                           "an operand with a number",
                           "an operand with an expression"})
    wanted.insert(each);
  for (const char* each : {"number", "constant", "n", "+", "-", "*", "/", "unary -"})
    wanted.insert("rotated by " + std::string(each));
  for (const char* comparison : {"<", "<=", "=="}) {
    wanted.insert(comparison);
    for (const char* side : {"i", "j", "n", "number", "an i32 operand"})
      wanted.insert(std::string(comparison) + " of integers, one " + side);
  }
  for (std::string row : {"", "i", "i / a", "i % b", "i / a % b"})
    for (std::string column : {"", "j", "j / a", "j % b", "j / a % b"}) {
      std::string shown = "[" + row + (row.empty() || column.empty() ? "" : ", ") + column + "]";
      for (const char* what : {"operand", "result"}) wanted.insert(what + shown);
      bool takes_sum = row != "i" || (column != "" && column != "j");
      if (takes_sum) wanted.insert("colsum into " + shown), wanted.insert("colmax into " + shown);
    }
  for (std::string what : {"operand", "result"})
    for (std::string index : {"i", "j"})
      for (std::string how : {" divided by ", " wrapped by "})
        for (const char* by : {"number", "constant", "n", "a quotient", "a quotient of n", "+", "-", "*", "unary -"})
          wanted.insert(what + ": " + index + how + by);
  return wanted;
}

TEST(RandomProgram, has_every_construct_of_the_language) {
  Constructs constructs;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    RandomProgram options{.seed = seed, .size = static_cast<int>(5 + seed % 40), .columns_multiple = 60};
    options.bits = options.bound = seed % 4 == 0;
    options.seeds = seed % 8 == 1;
    Program program = random_program(options);
    Status verified = verify(program);
    ASSERT_TRUE(verified) << "seed " << seed << ": " << verified.error().message;
    constructs.count(program);
  }
  for (const std::string& wanted : wanted_constructs())
    EXPECT_TRUE(constructs.found().contains(wanted)) << "no random program has: " << wanted;
}

// Another compiler draws the same programs: what one machine found, another can repeat.
TEST(RandomProgram, every_compiler_draws_the_same) {
  Hasher hasher;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    hasher.add(print(random_program({.seed = seed, .columns_multiple = 4})));
  EXPECT_EQ(short_hex(hasher), "0186f3b6e18e9bee");
}

}  // namespace
}  // namespace trireme
