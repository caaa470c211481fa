// Sums along rows, where each lane has a row of its own: the contract's tree, level by level through scratch.
#include <bit>

#include "schedule/across_lowering.hpp"

namespace trireme {

void AcrossLowering::reduce(const Stage& stage) {
  b_.note("a sweep that reduces");
  const std::vector<NodeId> nodes = needed(roots_of(stage));
  evaluate_rows(nodes);
  Reg first = b_.copy(zero_);
  b_.repeat_while_less(first, columns_, [&] {
    reduce_stripe(stage, nodes, first);
    b_.increase(first, contract::stripe);
  });
  join_stripes(stage);
  placed_.insert(stage.reductions.begin(), stage.reductions.end());
}

// Columns c, c + width, c + 2 width ... become one partial sum; `width` of them cover the stripe, or a last one's
// columns: absent halves of a tree change nothing. Then its lower levels.
void AcrossLowering::reduce_stripe(const Stage& stage, const std::vector<NodeId>& nodes, Reg first) {
  const int leaves = at_hand_.leaves;
  const std::size_t reductions = stage.reductions.size();
  auto op = [&](std::size_t r) { return program_[stage.reductions[r]].op; };
  Reg width = b_.index(contract::stripe / leaves), half = b_.index(contract::stripe / 2);
  Reg last = b_.index(Do::IndexSub, last_column_, first);
  b_.repeat_while_less(last, half, [&] {
    b_.emit({.code = Do::IndexShiftRight, .dst = width, .a = width, .imm = 1});
    b_.emit({.code = Do::IndexMul, .dst = half, .a = b_.index(Do::IndexShiftRight, width, 1), .imm = leaves});
  });
  Reg at = b_.copy(zero_), place = b_.copy(zero_);
  b_.repeat_while_less(at, width, [&] {
    std::vector<Column> columns;
    Reg index = b_.add(first, at);
    for (int k = 0; k < leaves; ++k) {
      if (k > 0) index = b_.add(index, width);
      // The same answer in all lanes: no column is as far off as lanes are.
      Reg past = b_.mul(b_.index(Do::IndexSub, index, columns_), 64);
      Reg exists = k == 0 ? Reg{} : b_.below(past, 0, zero_);
      columns.push_back(column_at(b_.index(Do::IndexMin, index, last_column_), exists, nodes));
      // The next column: of the next one's neighbours most are on their way already.
      if (config_.prefetch && !config_.overlap) fetch(columns.back(), b_.add(columns.back().index, 1), bases_);
    }
    each_register([&] {
      Known rows;
      for (NodeId id : rows_for(nodes)) value(id, rows, nullptr);
      auto leaf = [&](const Column& column) {
        Known known = rows;
        for (NodeId id : nodes)
          if (per_element(id)) value(id, known, &column);
        Values sums;
        for (std::size_t r = 0; r < reductions; ++r) {
          Reg term = value(program_[stage.reductions[r]].args[0], known, &column);
          if (column.exists) term = b_.primitive(Op::Select, {column.exists, term, b_.number(identity_of(op(r)))});
          sums.push_back(term);
        }
        return sums;
      };
      const Values sums = halving_tree(
          leaves, [&](int k) { return leaf(columns[k]); },
          [&](Values low, const Values& high) {
            for (std::size_t r = 0; r < reductions; ++r) low[r] = combine(b_, op(r), low[r], high[r]);
            return low;
          });
      for (std::size_t r = 0; r < reductions; ++r) store_scratch(partials_of(r), sums[r], place);
    });
    b_.increase(at, 1);
    b_.increase(place, turn_bytes());
  });
  b_.repeat_while_less(one_, width, [&] {
    b_.emit({.code = Do::IndexShiftRight, .dst = width, .a = width, .imm = 1});
    Reg low = b_.copy(zero_), end = b_.mul(width, turn_bytes());
    b_.repeat_while_less(low, end, [&] {
      Reg high = b_.add(low, end);
      each_register([&] {
        for (std::size_t r = 0; r < reductions; ++r) {
          Reg sum = combine(b_, op(r), load_scratch(partials_of(r), low), load_scratch(partials_of(r), high));
          store_scratch(partials_of(r), sum, low);
        }
      });
      b_.increase(low, turn_bytes());
    });
  });
  Reg stripe = b_.index(Do::IndexShiftRight, first, std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  std::vector<Reg> totals;
  for (std::size_t r = 0; r < reductions; ++r) totals.push_back(b_.add(b_.mul(stripe, turn_bytes()), totals_of(r)));
  each_register([&] {
    for (std::size_t r = 0; r < reductions; ++r) store_scratch(totals_at_, load_scratch(partials_of(r)), totals[r]);
  });
}

// Neighbours become one, level by level; one that is left over meets the identity.
void AcrossLowering::join_stripes(const Stage& stage) {
  for (std::size_t r = 0; r < stage.reductions.size(); ++r) {
    const NodeId id = stage.reductions[r];
    const Op op = program_[id].op;
    Reg totals = totals_of(r), count = b_.copy(stripes_);
    b_.repeat_while_less(one_, count, [&] {
      Reg beyond = b_.add(totals, b_.mul(count, turn_bytes()));
      each_register([&] { store_scratch(totals_at_, b_.number(identity_of(op)), beyond); });
      Reg to = b_.copy(totals), from = b_.copy(totals);
      b_.repeat_while_less(from, beyond, [&] {
        Reg neighbour = b_.add(from, turn_bytes());
        each_register([&] {
          Reg low = load_scratch(totals_at_, from), high = load_scratch(totals_at_, neighbour);
          store_scratch(totals_at_, combine(b_, op, low, high), to);
        });
        b_.increase(from, 2 * turn_bytes());
        b_.increase(to, turn_bytes());
      });
      b_.emit({.code = Do::IndexShiftRight, .dst = count, .a = b_.add(count, 1), .imm = 1});
    });
    each_register([&] { store_scratch(places_.at(id), load_scratch(totals_at_, totals)); });
  }
}

}  // namespace trireme
