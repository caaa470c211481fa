// How much code a program is, for choosing how much of it to write out.
#pragma once
#include <algorithm>
#include <vector>

#include "ir/program.hpp"

namespace trireme {

// Instructions of simd machines for a vector of elements, about.
inline int instructions_a_vector(const Program& program) {
  auto widening = [&](Type type) {
    const int more = type != *program.compute && *program.compute == Type::F64;
    switch (type) {
      case Type::BF16:
      case Type::I8: return 2 + more;
      case Type::F8E5M2: return 4 + more;
      case Type::F8E4M3: return 10 + more;
      case Type::F64:
      case Type::F32:
      case Type::F16:
      case Type::I32: return 1 + more;
    }
    return 1;
  };
  auto narrowing = [&](Type type) {
    const int more = type != *program.compute && *program.compute == Type::F64 ? 8 : 0;
    switch (type) {
      case Type::F64:
      case Type::F32: return 1;
      case Type::F16: return 2 + more;
      case Type::BF16: return 4 + more;
      case Type::I32: return 5;
      case Type::I8: return 9;
      case Type::F8E4M3:
      case Type::F8E5M2: return 17 + more;
    }
    return 1;
  };
  int count = 0;
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    const bool reduces = is_row_reduction(node.op) || node.op == Op::ColumnSum;
    if (!used[id] || (!node.by_column && !reduces)) continue;
    if (node.op == Op::Operand) count += widening(*program.operands[node.payload].type);
    else if (node.op == Op::RoundTo)
      count += narrowing(static_cast<Type>(node.payload)) + widening(static_cast<Type>(node.payload));
    else count += node.op == Op::Min || node.op == Op::Max || reduces ? 3 : 1;
  }
  for (const Output& result : program.results)
    if (result.spread.row.present && result.spread.column.present && program[result.value].op != Op::ColumnSum)
      count += narrowing(*result.type);
  return std::max(count, 1);
}

}  // namespace trireme
