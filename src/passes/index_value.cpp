#include "passes/index_value.hpp"

#include <cmath>

namespace trireme {
namespace {

bool is_whole(double value) { return value >= 1 && value == std::floor(value) && value < 0x1p53; }

// The first number of a divisor such as n / 2 / 4 that is not a positive integer.
std::optional<double> fraction_in(const Program& program, NodeId id) {
  if (id == no_node) return std::nullopt;
  if (program[id].op == Op::Div)
    for (NodeId arg : program[id])
      if (std::optional<double> found = fraction_in(program, arg)) return found;
  std::optional<double> value = as_number(program, id);
  return value && !is_whole(*value) ? value : std::nullopt;
}

Status check(const Program& program, const std::string& name, const Spread& spread) {
  for (NodeId id : {spread.row.divide, spread.row.wrap, spread.column.divide, spread.column.wrap})
    if (std::optional<double> found = fraction_in(program, id))
      return Error{Code::InvalidArgument, program.name + ": an index of '" + name + "' is divided or wrapped by " +
                                              std::to_string(*found) + "; a positive integer is needed"};
  return Done{};
}

}  // namespace

std::optional<double> index_value(const Program& program, NodeId id) {
  const Node& node = program[id];
  if (node.op == Op::Number) return node.number();
  std::optional<double> a, b;
  if (node.arity > 0) a = index_value(program, node.args[0]);
  if (node.arity > 1) b = index_value(program, node.args[1]);
  if (!a || (node.arity > 1 && !b)) return std::nullopt;
  switch (node.op) {
    case Op::Add: return *a + *b;
    case Op::Sub: return *a - *b;
    case Op::Mul: return *a * *b;
    case Op::Div: return *a / *b;
    case Op::Neg: return -*a;
    default: return std::nullopt;
  }
}

Status check_divisors(const Program& program) {
  for (const Operand& operand : program.operands) TRIREME_CHECK(check(program, operand.name, operand.spread));
  for (const Output& result : program.results) TRIREME_CHECK(check(program, result.name, result.spread));
  return Done{};
}

}  // namespace trireme
