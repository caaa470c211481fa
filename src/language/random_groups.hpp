// Reductions inside groups of columns and over groups, for random programs.
#pragma once
#include "ir/groups.hpp"
#include "language/random_indices.hpp"

namespace trireme {

class RandomGroups {
 public:
  RandomGroups(Program& program, Dice& dice, RandomIndices& indices)
      : program_(program), dice_(dice), indices_(indices) {}

  // Inside groups of columns, or over groups: those that the value has, or any where it is one a row.
  NodeId reduction(NodeId value) {
    const Op op = dice_.one_of(group_ops);
    const bool wraps = dice_.one_in(3);
    const ColumnSpread own = spreads_[value];
    if (own.is_group() && dice_.one_in(2)) return add_group(program_, {op, own.wraps, true}, value, own.by);
    const NodeId by = indices_.group();
    const bool entries = own.is_one() && dice_.one_in(3);
    return add_group(program_, {op, wraps, entries}, value, by);
  }

  // The value, or its reduction inside these groups where it differs there.
  NodeId fitted(NodeId value, const Axis& axis) {
    const ColumnSpread wanted = spread_of(axis);
    const Op op = dice_.one_of(group_ops);
    return fits(spreads_[value], wanted) ? value : add_group(program_, {op, wanted.wraps}, value, wanted.by);
  }

 private:
  Program& program_;
  Dice& dice_;
  RandomIndices& indices_;
  ColumnSpreads spreads_{program_};
};

}  // namespace trireme
