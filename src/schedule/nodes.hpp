// What every lowering knows of nodes.
#pragma once
#include <limits>
#include <vector>

#include "ir/program.hpp"
#include "schedule/kernel_builder.hpp"

namespace trireme {

// What changes nothing in a reduction, and how two of its values become one.
inline double identity_of(Op reduction) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return reduction == Op::Sum ? -0.0 : reduction == Op::Amax ? -infinity : infinity;
}
// What stands for a reduction of nothing.
inline double empty_of(Op reduction) { return reduction == Op::Sum ? 0.0 : identity_of(reduction); }
inline Op combination_of(Op reduction) {
  return reduction == Op::Sum ? Op::Add : reduction == Op::Amax ? Op::Max : Op::Min;
}
inline Reg combine(KernelBuilder& b, Op reduction, Reg low, Reg high) {
  return b.primitive(combination_of(reduction), {low, high});
}

inline Reg primitive(KernelBuilder& b, const Node& node, Reg x, Reg y, Reg z) {
  Instr instr{.code = Do::Primitive, .op = node.op, .a = x, .b = y, .c = z, .imm = node.payload};
  if (node.op == Op::RoundTo) instr.type = static_cast<Type>(node.payload);
  return b.into(is_condition(node.op) ? Bank::Mask : Bank::Lane, std::move(instr));
}

inline Reg number(KernelBuilder& b, const Program& program, const Node& node) {
  return b.number(*program.compute == Type::F32 ? static_cast<double>(static_cast<float>(node.number()))
                                                : node.number());
}

inline Reg constant(KernelBuilder& b, const Node& node) {
  return b.into(Bank::Lane,
                {.code = Do::LaneSlot, .imm = b.slot_number({Slot::What::Value, static_cast<int>(node.payload)})});
}

// By node: is it another value in every row?
inline std::vector<bool> varying_by_row(const Program& program) {
  std::vector<bool> varies(program.size());
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    varies[id] = node.by_row || is_row_reduction(node.op) || node.op == Op::Group;
    for (NodeId arg : node) varies[id] = varies[id] || varies[arg];
  }
  return varies;
}

}  // namespace trireme
