// Which comparisons are made in integers: those whose sides are both `i`, `j`, `n`, operands of i32, i64 or u8, or
// integer literals, rotated or not: rotations sink to the leaves, and a comparison that is rotated as a whole stays
// what it was. As numbers of the compute type they would be rounded, and column 16777217 of an f32 program would equal
// its neighbour.
#pragma once
#include <cmath>

#include "ir/program.hpp"

namespace trireme {

// Literals count up to 2^53, where f64 holds every integer. Beyond, rounding an index or an i32 cannot change how it
// compares with one.
inline bool is_integer_leaf(const Program& program, NodeId id) {
  const Node& node = program[id];
  switch (node.op) {
    case Op::RowIndex:
    case Op::ColumnIndex:
    case Op::ColumnCount: return true;
    case Op::Operand: {
      const std::optional<Type> type = program.operands[node.payload].type;
      return type == Type::I32 || type == Type::I64 || type == Type::U8;
    }
    case Op::Rotate: return is_integer_leaf(program, node.args[0]);
    case Op::Number: return std::fabs(node.number()) <= 0x1p53 && std::floor(node.number()) == node.number();
    default: return false;  // every other op computes in the compute type
  }
}

// Elements of memory against a literal whose neighbours the compute type holds too, or u8 against u8: numbers compare
// as the integers do, because rounding keeps the order, and vectors of numbers are compared at once.
inline bool compare_alike_as_numbers(const Program& program, NodeId a, NodeId b) {
  auto leaf = [&](NodeId id) { return program[id].op == Op::Rotate ? program[id].args[0] : id; };
  auto elements = [&](NodeId id) { return program[leaf(id)].op == Op::Operand && program[leaf(id)].by_column; };
  auto bytes = [&](NodeId id) {
    return program[leaf(id)].op == Op::Operand && program.operands[program[leaf(id)].payload].type == Type::U8;
  };
  const double whole = program.compute == Type::F64 ? 0x1p53 : 0x1p24;
  auto small = [&](NodeId id) { return program[id].op == Op::Number && std::fabs(program[id].number()) < whole; };
  return (elements(a) && small(b)) || (small(a) && elements(b)) || (bytes(a) && bytes(b));
}

inline bool compares_integers(const Program& program, const Node& node) {
  return (node.op == Op::Less || node.op == Op::LessEqual || node.op == Op::Equal) &&
         is_integer_leaf(program, node.args[0]) && is_integer_leaf(program, node.args[1]) &&
         !compare_alike_as_numbers(program, node.args[0], node.args[1]);
}

// g where a value is j - floor(j * (1 / g)) * g, the remainder of its column by a power of two (passes/pack.cpp); else
// 0.
inline std::int64_t column_remainder(const Program& program, NodeId id) {
  auto is = [&](NodeId each, Op op) { return program[each].op == op; };
  const Node& node = program[id];
  if (node.op != Op::Sub || !is(node.args[0], Op::ColumnIndex) || !is(node.args[1], Op::Mul)) return 0;
  const NodeId floor = program[node.args[1]].args[0], by = program[node.args[1]].args[1];
  if (!is(floor, Op::Floor) || !is(by, Op::Number) || !is(program[floor].args[0], Op::Mul)) return 0;
  const Node& quotient = program[program[floor].args[0]];
  const double divisor = program[by].number();
  if (quotient.args[0] != node.args[0] || !is(quotient.args[1], Op::Number) || !(divisor >= 2 && divisor <= 0x1p24) ||
      std::exp2(std::ilogb(divisor)) != divisor || program[quotient.args[1]].number() != 1 / divisor)
    return 0;
  return static_cast<std::int64_t>(divisor);
}

}  // namespace trireme
