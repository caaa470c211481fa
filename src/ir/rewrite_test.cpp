#include "ir/rewrite.hpp"

#include <gtest/gtest.h>

#include "ir/build.hpp"

namespace trireme {
namespace {

// y = (x + w) * (x - w) and s = colsum(x - w), the difference added first or last, with a node that nobody reads.
Program product(bool difference_first) {
  Program program;
  program.name = "f";
  program.operands = {{.name = "x", .spread = {{true}, {true}}}, {.name = "w", .spread = {{}, {true}}}};
  Formula x{&program, program.add(Op::Operand, {}, 0)}, w{&program, program.add(Op::Operand, {}, 1)};
  if (difference_first) x - w;
  else w - x;
  Formula sum = x + w, difference = x - w;
  program.results = {{.name = "y", .spread = {{true}, {true}}, .value = (sum * difference).id},
                     {.name = "s", .spread = {{}, {true}}, .value = column_sum(difference).id}};
  program.give_name(difference.id, "d");
  return program;
}

std::vector<std::string> nodes(const Program& program) {
  std::vector<std::string> lines;
  for (NodeId id = 0; id < program.size(); ++id) {
    lines.push_back(std::string(facts(program[id].op).name));
    for (NodeId arg : program[id]) lines.back() += " " + std::to_string(arg);
  }
  return lines;
}

TEST(Rewrite, fault_66_canonical_order_does_not_depend_on_the_order_of_adding) {
  const Program first = product(true), last = product(false);
  ASSERT_NE(nodes(first), nodes(last));
  const Program ordered = in_canonical_order(first);
  EXPECT_EQ(nodes(ordered), nodes(in_canonical_order(last)));
  EXPECT_EQ(nodes(ordered), nodes(in_canonical_order(ordered)));
  EXPECT_EQ(ordered.size(), 6u) << "what nobody reads is left out";
  EXPECT_EQ(*ordered.name_of(ordered[ordered.results[0].value].args[1]), "d");
}

}  // namespace
}  // namespace trireme
