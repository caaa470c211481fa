// How much arithmetic a program is, by a machine's table of instructions.
#pragma once
#include <algorithm>
#include <vector>

#include "math/reductions.hpp"
#include "schedule/config.hpp"

namespace trireme {

// Of what the second total of a fold sums up.
inline int instructions_of_term(const Program& program, const Node& total, const InstructionCosts& costs) {
  const FoldFormula term = fold_term(folds()[total.payload / 2], *program.compute, true);
  int count = 0;
  std::vector<bool> by_element(term.program.size());
  for (NodeId id = 0; id < term.program.size(); ++id) {
    const Node& node = term.program[id];
    by_element[id] = node.op == Op::Operand && node.payload == 0;
    for (NodeId arg : node) by_element[id] = by_element[id] || by_element[arg];
    if (!by_element[id] || node.arity == 0) continue;
    count += node.op == Op::Min || node.op == Op::Max ? costs.extremum : node.op == Op::Div ? costs.divide : 1;
  }
  return count;
}

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
    const bool reduces = is_row_reduction(node.op) || is_column_reduction(node.op) || node.op == Op::Group;
    if (!used[id] || (!node.by_column && !reduces)) continue;
    switch (node.op) {
      case Op::Operand: count += widen(*program.operands[node.payload].type); break;
      case Op::RoundTo:
        count += narrow(static_cast<Type>(node.payload)) + widen(static_cast<Type>(node.payload));
        break;
      case Op::Min:
      case Op::Max: count += costs.extremum; break;
      case Op::Random: count += 220; break;  // ten rounds of two products of 64 bits (x86/random.cpp)
      case Op::Div: count += costs.divide; break;
      case Op::Sqrt: count += costs.square_root; break;
      case Op::Fold: count += 3 + (node.payload % 2 ? instructions_of_term(program, node, costs) : 0); break;
      default: count += reduces ? 3 : 1;
    }
  }
  for (const Output& result : program.results)
    if (result.spread.row.present && result.spread.column.present && result.spread.column.plain() &&
        !is_column_reduction(program[result.value].op))
      count += narrow(*result.type);
  return std::max(count, 1);
}

}  // namespace trireme
