// How much arithmetic a program is, by a machine's table of instructions.
#pragma once
#include <algorithm>
#include <vector>

#include "schedule/config.hpp"

namespace trireme {

// For a vector of elements on simd machines, for one element on others.
inline int instructions_a_vector(const Program& program, const InstructionCosts& costs) {
  const bool wide = *program.compute == Type::F64;
  auto of = [&](Type type) -> const InstructionCosts::Storage& {
    return costs.storage[static_cast<std::size_t>(type)];
  };
  auto widen = [&](Type type) { return of(type).widen + wide * of(type).widen_f64; };
  auto narrow = [&](Type type) { return of(type).narrow + wide * of(type).narrow_f64; };
  int count = 0;
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    const bool reduces = is_row_reduction(node.op) || node.op == Op::ColumnSum;
    if (!used[id] || (!node.by_column && !reduces)) continue;
    switch (node.op) {
      case Op::Operand: count += widen(*program.operands[node.payload].type); break;
      case Op::RoundTo:
        count += narrow(static_cast<Type>(node.payload)) + widen(static_cast<Type>(node.payload));
        break;
      case Op::Min:
      case Op::Max: count += costs.extremum; break;
      case Op::Div: count += costs.divide; break;
      case Op::Sqrt: count += costs.square_root; break;
      default: count += reduces ? 3 : 1;
    }
  }
  for (const Output& result : program.results)
    if (result.spread.row.present && result.spread.column.present && program[result.value].op != Op::ColumnSum)
      count += narrow(*result.type);
  return std::max(count, 1);
}

}  // namespace trireme
