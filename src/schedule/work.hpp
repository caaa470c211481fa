// How much arithmetic a program is, by a machine's table of instructions.
#pragma once
#include <algorithm>
#include <vector>

#include "math/reductions.hpp"
#include "schedule/config.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// Of what the second total of a fold sums up.
inline int instructions_of_term(const Program& program, const Node& total, const InstructionCosts& costs) {
  const FoldFormula term = fold_term(folds()[total.payload / 2], *program.compute, true);
  int count = 0;
  std::vector<bool> by_element(term.program.size());
  for (NodeId id = 0; id < term.program.size(); ++id) {
    const Node& node = term.program[id];
    by_element[id] = is_element(node);
    for (NodeId arg : node) by_element[id] = by_element[id] || by_element[arg];
    if (!by_element[id] || node.arity == 0) continue;
    count += node.op == Op::Min || node.op == Op::Max ? costs.extremum : node.op == Op::Div ? costs.divide : 1;
  }
  return count;
}

// Of one value: for a vector of elements on simd machines, for one element on others.
inline int instructions_of(const Program& program, NodeId id, const InstructionCosts& costs) {
  const bool wide = *program.compute == Type::F64;
  auto of = [&](Type type) -> const InstructionCosts::Storage& {
    return costs.storage[static_cast<std::size_t>(type)];
  };
  auto widen = [&](Type type) { return of(type).widen + wide * of(type).widen_f64; };
  auto narrow = [&](Type type) { return of(type).narrow + wide * of(type).narrow_f64; };
  const Node& node = program[id];
  const bool reduces = is_row_reduction(node.op) || is_column_reduction(node.op) || node.op == Op::Group;
  if (!node.by_column && !reduces) return 0;
  switch (node.op) {
    case Op::Operand: return widen(*program.operands[node.payload].type);
    case Op::RoundTo: return narrow(static_cast<Type>(node.payload)) + widen(static_cast<Type>(node.payload));
    case Op::Min:
    case Op::Max: return costs.extremum;
    case Op::Random: return 220;  // ten rounds of two products of 64 bits (x86/random.cpp)
    case Op::Div: return costs.divide;
    case Op::Sqrt: return costs.square_root;
    case Op::Fold: return 3 + (node.payload % 2 ? instructions_of_term(program, node, costs) : 0);
    default: return reduces ? 3 : 1;
  }
}

// All values, each once.
inline int instructions_a_vector(const Program& program, const InstructionCosts& costs) {
  const bool wide = *program.compute == Type::F64;
  int count = 0;
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id]) count += instructions_of(program, id, costs);
  for (const Output& result : program.results)
    if (result.spread.row.present && result.spread.column.present && result.spread.column.plain() &&
        !is_column_reduction(program[result.value].op)) {
      const InstructionCosts::Storage& stored = costs.storage[static_cast<std::size_t>(*result.type)];
      count += stored.narrow + wide * stored.narrow_f64;
    }
  return std::max(count, 1);
}

// What sweeps have in common, beside a row's sums.
struct SweepReuse {
  int again = 0;  // instructions of values that a sweep makes again after an earlier one, where none are kept
  int kept = 0;   // values an element that some sweep leaves to later ones, where they are
};

inline SweepReuse reuse_of(const Program& program, const Stages& stages, const InstructionCosts& costs) {
  SweepReuse reuse;
  // The sweep that makes a value first, and the last one that takes it as it is: where no earlier sweep made what needs
  // it.
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> first(program.size(), none), last(program.size(), 0);
  for (std::size_t k = 0; k < stages.sweeps.size(); ++k) {
    std::vector<NodeId> open = stages.sweeps[k].elements(program);
    for (NodeId id : open)
      if (first[id] < k) last[id] = k;
    std::vector<bool> wanted(program.size());
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (wanted[id] || !program[id].by_column) continue;
      wanted[id] = true;
      if (first[id] < k) reuse.again += instructions_of(program, id, costs);
      for (NodeId arg : program[id]) {
        open.push_back(arg);
        if (first[id] >= k && first[arg] < k) last[arg] = k;
      }
    }
    for (NodeId id = 0; id < program.size(); ++id)
      if (wanted[id] && first[id] == none) first[id] = k;
  }
  for (std::size_t k = 1; k < stages.sweeps.size(); ++k) {
    int kept = 0;
    for (NodeId id = 0; id < program.size(); ++id)
      kept += program[id].by_column && program[id].by_row && first[id] < k && last[id] >= k;
    reuse.kept = std::max(reuse.kept, kept);
  }
  return reuse;
}

}  // namespace trireme
