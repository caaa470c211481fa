#include "math/reductions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

Formula operand(Program& program, std::string name, bool constant = false) {
  const auto place = static_cast<std::int64_t>(program.operands.size());
  program.operands.push_back({.name = std::move(name), .constant = constant});
  if (!constant) program.operands.back().spread = {{true}, {true}};
  return {&program, program.add(constant ? Op::Constant : Op::Operand, {}, place)};
}

void add_result(Program& program, std::string name, Formula value) {
  program.results.push_back({.name = std::move(name), .spread = {{true}, {true}}, .value = value.id});
}

}  // namespace

Program combine_program(const Exchange& exchange) {
  Program made;
  if (exchange.op != Op::Fold) {
    made.name = "combine_" + std::string(facts(exchange.op).name);
    const Formula left = operand(made, "left");
    const Formula right = operand(made, "right");
    const Op op = exchange.op == Op::Sum ? Op::Add : exchange.op == Op::Amax ? Op::Max : Op::Min;
    add_result(made, "both", left.with(op, {left.id, right.id}));
    return made;
  }
  const Fold& fold = folds()[exchange.fold];
  made.name = "combine_" + std::string(fold_name(exchange.fold));
  const Formula left_first = operand(made, "left_first"), left_second = operand(made, "left_second");
  const Formula right_first = operand(made, "right_first"), right_second = operand(made, "right_second");
  const Formula left_columns = operand(made, "left_columns", true);
  const Formula right_columns = operand(made, "right_columns", true);
  const Totals both = fold.merge({left_first, left_second}, {right_first, right_second}, left_columns, right_columns);
  add_result(made, "both_first", both[0]);
  add_result(made, "both_second", both[1]);
  return made;
}

}  // namespace trireme
