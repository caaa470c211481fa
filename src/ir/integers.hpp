// Which comparisons are made in integers: those whose sides are both `i`, `j`, `n`, i32 operands or integer literals,
// rotated or not: rotations sink to the leaves, and a comparison that is rotated as a whole stays what it was.
// As numbers of the compute type they would be rounded, and column 16777217 of an f32 program would equal its
// neighbour.
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
    case Op::Operand: return program.operands[node.payload].type == Type::I32;
    case Op::Rotate: return is_integer_leaf(program, node.args[0]);
    case Op::Number: return std::fabs(node.number()) <= 0x1p53 && std::floor(node.number()) == node.number();
    default: return false;  // every other op computes in the compute type
  }
}

inline bool compares_integers(const Program& program, const Node& node) {
  return (node.op == Op::Less || node.op == Op::LessEqual || node.op == Op::Equal) &&
         is_integer_leaf(program, node.args[0]) && is_integer_leaf(program, node.args[1]);
}

}  // namespace trireme
