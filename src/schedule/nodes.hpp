// What every lowering knows of nodes.
#pragma once
#include <bit>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "ir/integers.hpp"
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
inline Values combine(KernelBuilder& b, Op reduction, Values low, const Values& high) {
  for (std::size_t e = 0; e < low.size(); ++e) low[e] = combine(b, reduction, low[e], high[e]);
  return low;
}

// Rule 4's tree over `count` values, a power of two, depth first: `leaf(k)` makes one, `merge(low, high)` one of two;
// it may take their distance too.
template <typename Leaf, typename Merge>
auto halving_tree(int count, Leaf&& leaf, Merge&& merge) {
  auto tree = [&](auto&& self, int base, int step) -> decltype(leaf(0)) {
    if (step == count) return leaf(base);
    auto low = self(self, base, step * 2), high = self(self, base + step, step * 2);
    if constexpr (std::is_invocable_v<Merge, decltype(low), decltype(low), int>) return merge(low, high, step);
    else return merge(low, high);
  };
  return tree(tree, 0, 1);
}
// The same of registers; `leaf(k)` may have none.
template <typename Leaf>
std::optional<Reg> tree_of(KernelBuilder& b, Op op, int count, Leaf&& leaf) {
  return halving_tree(count, leaf, [&](std::optional<Reg> low, std::optional<Reg> high) {
    return low && high ? combine(b, op, *low, *high) : low ? low : high;
  });
}

// Of a power of two of values at hand.
inline Reg tree_of(KernelBuilder& b, Op op, const Values& values) {
  return *tree_of(b, op, static_cast<int>(values.size()), [&](int k) { return std::optional(values[k]); });
}

// The tree over values from + 0 .. count - 1: neighbours in pairs, level by level, an odd last one moving up. The
// largest power of two of values that leaves some is one side.
template <typename Leaf>
Reg neighbour_tree(KernelBuilder& b, Op op, std::int64_t from, std::int64_t count, Leaf&& leaf) {
  if (count == 1) return leaf(from);
  const auto left = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)) / 2);
  const Reg low = neighbour_tree(b, op, from, left, leaf);
  const Reg high = neighbour_tree(b, op, from + left, count - left, leaf);
  return combine(b, op, low, high);
}

// A level across lanes whose numbers differ by `lanes`: the half of them that is `upper` keeps `high` and sends `low`,
// the other the other way round.
inline Values exchanged(KernelBuilder& b, Op op, Reg upper, Values low, const Values& high, int lanes) {
  for (std::size_t e = 0; e < low.size(); ++e) {
    const Reg keep = b.primitive(Op::Select, {upper, high[e], low[e]});
    const Reg send = b.primitive(Op::Select, {upper, low[e], high[e]});
    low[e] = combine(b, op, keep, b.shuffle_xor(send, lanes));
  }
  return low;
}

// The identity stands for terms of columns that do not exist; without a mask all do.
inline Values where_present(KernelBuilder& b, Op op, Reg exist, Values terms) {
  if (!exist) return terms;
  const Reg none = b.number(identity_of(op));
  for (Reg& each : terms) each = b.primitive(Op::Select, {exist, each, none});
  return terms;
}

// What the program calls its nodes: operands, constants, results and what its lines name.
class NodeNames {
 public:
  explicit NodeNames(const Program& program) : names_(program.size()) {
    for (const auto& [id, name] : program.names()) names_[id] = &name;
    for (const Output& result : program.results)
      if (result.value != no_node) names_[result.value] = &result.name;
    for (NodeId id = 0; id < program.size(); ++id)
      if (program[id].op == Op::Operand || program[id].op == Op::Constant)
        names_[id] = &program.operands[program[id].payload].name;
  }
  // Says in the kernel's listing which registers hold the node's value, where it has a name.
  Values say(KernelBuilder& b, NodeId id, Values values) const {
    if (names_[id]) b.name(*names_[id], values);
    return values;
  }
  Reg say(KernelBuilder& b, NodeId id, Reg value) const { return say(b, id, Values{value})[0]; }

 private:
  std::vector<const std::string*> names_;
};

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

// Of a node that is no operand nor index; `columns`: how many there are.
inline Reg plain_value(KernelBuilder& b, const Program& program, const Node& node, Reg columns, Reg x, Reg y, Reg z) {
  if (node.op == Op::Number) return number(b, program, node);
  if (node.op == Op::Constant) return constant(b, node);
  if (node.op == Op::ColumnCount) return b.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = columns});
  return primitive(b, node, x, y, z);
}

// Of nodes, what every lowering makes: no groups, folds, random numbers, nor comparisons of whole numbers.
inline bool is_plain_value(const Program& program, const Node& node) {
  return node.op < Op::Mean && node.op != Op::Fold && node.op != Op::PickColumn && node.op != Op::Random &&
         node.op != Op::Group && !compares_integers(program, node);
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
