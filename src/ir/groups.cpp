#include "ir/groups.hpp"

namespace trireme {

ColumnSpread spread_of(const Axis& axis) {
  if (!axis.present) return {};
  if (!is_group(axis)) return {ColumnSpread::Kind::Element};
  return {ColumnSpread::Kind::Group, axis.wrap != no_node, axis.wrap != no_node ? axis.wrap : axis.divide};
}

ColumnSpread joined(const ColumnSpread& a, const ColumnSpread& b) {
  if (a.is_one() || a == b) return b;
  return b.is_one() ? a : ColumnSpread{ColumnSpread::Kind::Element};
}

ColumnSpread ColumnSpreads::operator[](NodeId wanted) {
  for (NodeId id = static_cast<NodeId>(known_.size()); id <= wanted; ++id) {
    const Node& node = (*program_)[id];
    ColumnSpread spread;
    if (!node.by_column) {
    } else if (node.op == Op::Operand) {
      spread = spread_of(program_->operands[node.payload].spread.column);
    } else if (node.op == Op::Group) {
      spread = {ColumnSpread::Kind::Group, group_of(node).wraps, node.args[1]};
    } else if (node.arity == 0 || node.op == Op::Rotate || node.op == Op::ReduceSpread ||
               is_column_reduction(node.op)) {
      spread = {ColumnSpread::Kind::Element};
    } else {
      for (NodeId arg : node) spread = joined(spread, known_[arg]);
      if (spread.is_one()) spread = {ColumnSpread::Kind::Element};  // random numbers, of one seed
    }
    known_.push_back(spread);
  }
  return known_[wanted];
}

}  // namespace trireme
