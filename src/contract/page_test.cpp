// docs/contract.md: the expansions of functions and folds, as lists of operations, are those of the records. BLESS=1
// test_contract rewrites them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ir/contract.hpp"
#include "ir/rewrite.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

// One operation a line, in an order in which they can be carried out; numbers are what the compute type holds.
class Listing {
 public:
  Listing(const Program& program, std::vector<std::string> arguments)
      : program_(program), arguments_(std::move(arguments)), text_of_(program.size()) {}

  std::string run(const std::vector<std::string>& results) {
    const std::vector<bool> wanted = reachable(program_);
    std::string lines;
    int lines_so_far = 0;
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (!wanted[id]) continue;
      const Node& node = program_[id];
      if (node.op == Op::Number) {
        text_of_[id] = hex(node.number());
      } else if (node.op == Op::Operand) {
        text_of_[id] = arguments_[static_cast<std::size_t>(node.payload)];
      } else {
        for (std::size_t k = 0; k < results.size(); ++k)
          if (program_.results[k].value == id) text_of_[id] = results[k];
        if (text_of_[id].empty()) text_of_[id] = fmt::format("t{}", ++lines_so_far);
        lines += fmt::format("{} = {}\n", text_of_[id], operation(node));
      }
    }
    return lines;
  }

 private:
  std::string hex(double number) const {
    if (program_.compute == Type::F32) number = static_cast<float>(number);
    return std::isfinite(number) ? fmt::format("{:a}", number) : number > 0 ? "inf" : number < 0 ? "-inf" : "nan";
  }
  std::string operation(const Node& node) const {
    const std::string_view name =
        node.op == Op::Call ? functions()[static_cast<std::size_t>(node.payload)].name : facts(node.op).name;
    auto arg = [&](int k) { return text_of_[node.args[static_cast<std::size_t>(k)]]; };
    if (node.op == Op::Neg) return "-" + arg(0);
    const bool infix = (node.op >= Op::Add && node.op <= Op::Div) || (node.op >= Op::Less && node.op <= Op::Equal);
    if (infix) return fmt::format("{} {} {}", arg(0), name, arg(1));
    std::string text = std::string(name) + '(';
    for (int k = 0; k < node.arity; ++k) text += (k ? ", " : "") + arg(k);
    if (node.op == Op::BitsShiftLeft || node.op == Op::BitsShiftRight) text += fmt::format(", {}", node.payload);
    return text + ')';
  }

  const Program& program_;
  const std::vector<std::string> arguments_;
  std::vector<std::string> text_of_;
};

std::string listing_of(const Function& function, Type compute) {
  const std::vector<std::string> names =
      function.arity == 3 ? std::vector<std::string>{"x", "low", "high"} : std::vector<std::string>{"x"};
  Program program;
  program.name = "f";
  program.compute = compute;
  Spread element;
  element.row.present = element.column.present = true;
  std::vector<Formula> arguments;
  for (const std::string& name : names) {
    program.operands.push_back({.name = name, .spread = element, .type = compute});
    arguments.push_back({&program, program.add(Op::Operand, {}, static_cast<std::int64_t>(arguments.size()))});
  }
  const Formula value = function.expand(compute, arguments);
  program.results.push_back({.name = "y", .spread = element, .value = value.id, .type = compute});
  const Program made = in_canonical_order(simplify(expand_calls(std::move(program))));
  return Listing(made, names).run({"y"});
}

std::string block(const std::string& heading, const std::string& lines) {
  return fmt::format("{}\n\n```text\n{}```\n\n", heading, lines);
}

std::string functions_markdown() {
  std::string text;
  for (const Function& each : functions()) {
    const std::string f32 = listing_of(each, Type::F32), f64 = listing_of(each, Type::F64);
    const std::string arguments = each.arity == 3 ? "x, low, high" : "x";
    text += fmt::format("### {}({})\n\n", each.name, arguments);
    if (f32 == f64) text += block("In f32 and f64:", f32);
    else text += block("In f32:", f32) + block("In f64:", f64);
  }
  return text;
}

std::string folds_markdown() {
  std::string text;
  for (const Fold& each : folds()) {
    if (each.weighted) continue;  // made by `compose` alone: no program has it
    const auto index = static_cast<std::int64_t>(&each - folds().data());
    const FoldFormula term = fold_term(each, Type::F64, false), merge = fold_merge(each, Type::F64, false);
    text += fmt::format("### The fold of {}\n\nThe first total of a stripe is its {}.\n\n", fold_name(index),
                        each.first == Op::Sum ? "row sum" : "`amax`");
    text += block("`term(x, a, c)`:", Listing(term.program, {"x", "a", "c"}).run({"term"}));
    text += block("`merge(a1, b1, c1, a2, b2, c2)`:",
                  Listing(merge.program, {"a1", "b1", "a2", "b2", "c1", "c2"}).run({"a", "b"}));
  }
  return text;
}

TEST(ContractPage, lists_the_expansions) {
  const std::string file = std::string(TRIREME_SOURCE_DIR) + "/docs/contract.md";
  std::stringstream read;
  read << std::ifstream(file).rdbuf();
  std::string text = read.str();
  auto fill = [&](const std::string& first, const std::string& last, const std::string& made) {
    const std::size_t from = text.find(first), to = text.find(last);
    ASSERT_TRUE(from != text.npos && to != text.npos) << first;
    text = text.substr(0, from + first.size()) + made + text.substr(to);
  };
  fill("<!-- generated: expansions -->\n", "<!-- end of expansions -->\n", "\n" + functions_markdown());
  fill("<!-- generated: folds -->\n", "<!-- end of folds -->\n", "\n" + folds_markdown());
  if (std::getenv("BLESS")) std::ofstream(file) << text;
  else EXPECT_TRUE(text == read.str()) << "BLESS=1 test_contract rewrites docs/contract.md";
  EXPECT_NE(text.find(fmt::format("# The contract, version {}\n", contract::version)), text.npos);
}

}  // namespace
}  // namespace trireme
