// Values that are one a group of columns. Where a chunk holds whole groups they are made of shuffles; else
// group_sums.cpp leaves them in the row's own memory, on simd machines spread to columns, on others one a group.
#include <algorithm>
#include <bit>
#include <utility>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "ir/integers.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {

// The entries of j / g are the first columns of its groups, every g-th: the first group of j % g. And those of j % g
// are the first g columns: the first group of j / g.
RowLowering::Groups RowLowering::groups_of_node(NodeId id) const {
  const GroupReduction kind = group_of(program_[id]);
  const auto by = static_cast<std::int64_t>(program_[program_[id].args[1]].number());
  const bool wraps = kind.wraps != kind.entries;
  AxisIndexing column{.present = true, .divide = wraps ? 1 : by, .wrap = wraps ? by : 0};
  Groups groups{.node = id, .op = kind.op, .entries = kind.entries, .column = column};
  groups.shares = shares_of(column, config_.columns);
  groups.wide = kind.entries ? 1 : group_count(config_.columns, by, wraps);
  return groups;
}

// Simd machines: each column gets its group's value. What is stored beyond a group is stored again by the next, and
// beyond the last column there is room.
void RowLowering::spread_groups(const Groups& groups) {
  const Reg columns = b_.index(config_.columns);
  auto store = [&](Reg at, Reg value) {
    Instr instr = term_access(Do::Store, groups.values_at, at, {});
    instr.values = {value};
    b_.emit(std::move(instr));
  };
  auto one = [&](Reg entry) {
    Instr load = term_access(Do::LoadOne, group_sums_at_, entry, {});
    return b_.into(Bank::Lane, std::move(load));
  };
  if (groups.entries) return store(zero_, one(zero_));
  Reg begin = b_.copy(zero_);
  if (groups.column.wrap) {
    b_.repeat_while_less(begin, columns, [&] {
      const Reg left = b_.index(Do::IndexSub, columns, begin);
      const Reg count = b_.index(Do::IndexMin, left, groups.column.wrap);
      Reg at = b_.copy(zero_);
      b_.repeat_while_less(at, count, [&] {
        const Reg value = load_term(group_sums_at_, at, {});
        store(b_.add(begin, at), value);
        b_.increase(at, config_.lanes);
      });
      b_.increase(begin, groups.column.wrap);
    });
    return;
  }
  Reg entry = b_.copy(zero_);
  b_.repeat_while_less(begin, columns, [&] {
    const Reg value = one(entry), next = b_.add(begin, groups.column.divide);
    const Reg end = b_.index(Do::IndexMin, next, columns);
    Reg at = b_.copy(begin);
    b_.repeat_while_less(at, end, [&] {
      store(at, value);
      b_.increase(at, config_.lanes);
    });
    b_.increase(begin, groups.column.divide);
    b_.increase(entry, 1);
  });
}

Values RowLowering::load_group(NodeId id, std::int64_t rotate, const Leaf& leaf) {
  const auto groups = std::find_if(groups_.begin(), groups_.end(), [&](const Groups& each) { return each.node == id; });
  const GroupsApart::Group* alone = config_.simd ? nullptr : apart(id);
  Instr from = alone ? value_apart(Do::Load, *alone, {}, {}) : term_access(Do::Load, groups->values_at, {}, {});
  ColumnMap map{.axis = {.present = true}, .rotate = rotate};
  if (config_.simd && groups->rematerialised) return load_rematerialised(*groups, leaf);
  if (config_.simd) {
    if (rotate) return load_mapped(from, map, leaf);
    from.b = leaf.column, from.c = leaf.mask;
    from.imm += leaf.offset * value_bytes();
    Values values = from.values = fresh_values();
    b_.emit(std::move(from));
    return values;
  }
  const Node& node = program_[id];
  (group_of(node).wraps ? map.axis.wrap : map.axis.divide) = node.args[1];
  return load_mapped(from, map, leaf);
}

// The columns of a group differ in some bits of their number: for j / g the lower ones, for j % g the upper ones. Rule
// 4 brings columns together that differ in the highest of them first; whichever of two is added to the other, the sum
// is the same.
Values RowLowering::group_in_chunk(NodeId id, const Leaf& leaf) {
  const Node& node = program_[id];
  const GroupReduction kind = group_of(node);
  const auto by = static_cast<std::int64_t>(program_[node.args[1]].number());
  const auto row = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(config_.columns)));
  if (kind.wraps && row > chunk_columns()) return group_in_row(id, leaf);
  Values values = present(chunk(node.args[0], leaf), kind.op, leaf);
  if (!kind.wraps && by >= config_.vector) {
    const auto lanes = std::bit_ceil(static_cast<std::uint64_t>(by / config_.vector));
    return Values(config_.vector, across_lanes(kind.op, {values}, static_cast<int>(lanes)));
  }
  for (std::int64_t bit = (kind.wraps ? row : by) / 2; bit >= (kind.wraps ? by : 1); bit /= 2)
    values = add_bit(kind.op, values, bit);
  return values;
}

// A group of j % g in all chunks of an unrolled row, which differ in the highest bits: theirs first.
Values RowLowering::group_in_row(NodeId id, const Leaf& leaf) {
  const Op op = group_of(program_[id]).op;
  const auto by = static_cast<std::int64_t>(program_[program_[id].args[1]].number());
  std::vector<std::optional<Values>> parts;
  for (int c = 0; c < chunks(); ++c) {
    const Leaf each = unrolled_leaf(0, c, state_);
    parts.push_back(std::nullopt);
    if (each.id >= 0) parts.back() = present(value_of_part(program_[id].args[0], each), op, each);
  }
  const auto distinct = static_cast<std::size_t>(std::max<std::int64_t>(1, by / chunk_columns()));
  for (; parts.size() > distinct; parts.resize(parts.size() / 2))
    for (std::size_t k = 0; k < parts.size() / 2; ++k) parts[k] = fold(op, parts[k], parts[k + parts.size() / 2]);
  for (std::int64_t bit = chunk_columns() / 2; bit >= by; bit /= 2) parts[0] = add_bit(op, *parts[0], bit);
  for (int c = 0; c < chunks(); ++c)
    if (ValuesByNode& memory = memory_of(id, {.id = c}); !memory.find(id))
      memory.put(id, *parts[static_cast<std::size_t>(c) % distinct]);
  return *memory_of(id, leaf).find(id);
}

bool RowLowering::in_chunks_of_row(NodeId id) const {
  return config_.simd && program_[id].op == Op::Group && group_of(program_[id]).wraps && !is_kept_group(id);
}

// Columns of a chunk whose numbers differ by `bit`; both have the sum.
Values RowLowering::add_bit(Op op, const Values& values, std::int64_t bit) {
  Values next;
  for (int e = 0; e < config_.vector; ++e) {
    const auto other = static_cast<std::size_t>(e ^ bit);
    if (bit >= config_.vector)
      next.push_back(combine(op, values[e], b_.shuffle_xor(values[e], static_cast<int>(bit / config_.vector))));
    else next.push_back(e & bit ? next[other] : combine(op, values[e], values[other]));
  }
  return next;
}

// Of values that are one a group of neighbours, where stripes are cut between groups.
void RowLowering::find_group_widths() {
  group_width_.assign(program_.size(), 0);
  ColumnSpreads spreads(program_);
  for (NodeId id = 0; id < program_.size(); ++id) {
    const ColumnSpread spread = spreads[id];
    if (!used_[id] || is_kept_group(id) || !spread.is_group() || spread.wraps) continue;
    const std::int64_t by = fixed_divisor(spread.by).value_or(0);
    if (by <= 0) continue;
    const bool held = config_.group ? config_.group % by == 0 : by <= contract::stripe;
    if (by == config_.group || (held && std::has_single_bit(static_cast<std::uint64_t>(by)))) group_width_[id] = by;
  }
}

// A group of several chunks: their own order first, then that of lanes and elements.
Values RowLowering::group_over_chunks(const Node& node, const Leaf& leaf) {
  const Op op = group_of(node).op;
  const auto by = static_cast<std::int64_t>(program_[node.args[1]].number());
  const std::int64_t count = (by + chunk_columns() - 1) / chunk_columns();
  std::vector<std::optional<Values>> parts(std::bit_ceil(static_cast<std::uint64_t>(count)));
  for (std::int64_t part = 0; part < count; ++part) {
    const Leaf each = part_of_group(leaf, by, part);
    if (leaf.id < 0 || each.id >= 0) parts[part] = present(value_of_part(node.args[0], each), op, each);
  }
  for (std::size_t half = parts.size() / 2; half >= 1; half /= 2)
    for (std::size_t k = 0; k < half; ++k) parts[k] = fold(op, parts[k], parts[k + half]);
  return Values(config_.vector, across_lanes(op, {parts[0]}));
}

Leaf RowLowering::part_of_group(const Leaf& leaf, std::int64_t width, std::int64_t part) {
  const std::int64_t inside = part * chunk_columns();
  Leaf made = leaf;
  made.paired = false;
  made.offset = leaf.offset / width * width + inside;
  if (leaf.id >= 0) {
    const std::int64_t chunk = made.offset % config_.stripe() / chunk_columns();
    return unrolled_leaf(static_cast<int>(made.offset / stripe_step()), static_cast<int>(chunk), state_);
  }
  if (config_.simd && leaf.aligned < width) {
    made.column = b_.index(Do::IndexAnd, b_.add(leaf.column, leaf.offset), -width);
    made.offset = inside;
    made.back = back_from(made.column);
  }
  made.mask = mask_of(made);
  return made;
}

// A value of another chunk than the one at hand.
Values RowLowering::value_of_part(NodeId id, const Leaf& leaf) {
  if (!program_[id].by_column) return Values(config_.vector, one(id));
  std::vector<bool> wanted(id + 1);
  std::vector<NodeId> nodes;
  auto is_kept = [&](NodeId each) {
    return !config_.stripes && std::any_of(kept_.begin(), kept_.end(), [&](const Kept& kept) {
      return kept.id == each && kept.sweep < sweep_at_hand_;
    });
  };
  wanted[id] = true;
  for (NodeId each = id + 1; each-- > 0;) {
    const Node& node = program_[each];
    if (!wanted[each] || !node.by_column) continue;
    nodes.push_back(each);
    if (is_kept(each) || is_kept_group(each) || node.op == Op::Rotate || compares_integers(program_, node)) continue;
    if (node.op == Op::Group && spans_chunks(each)) continue;
    for (int k = 0; k < (node.op == Op::Group ? 1 : node.arity); ++k) wanted[node.args[k]] = true;
  }
  std::reverse(nodes.begin(), nodes.end());
  if (leaf.id >= 0) {
    evaluate_chunk(nodes, leaf);
    return chunk(id, leaf);
  }
  ValuesByNode outer = std::exchange(loop_values_, {});
  load_kept(sweep_at_hand_, nodes, leaf);
  evaluate_chunk(nodes, leaf);
  Values values = chunk(id, leaf);
  loop_values_ = std::move(outer);
  return values;
}

// What is one value in several chunks is made in the first of them.
const Values* RowLowering::shared_in_group(NodeId id, const Leaf& leaf) {
  if (!spans_chunks(id) || column_shift_ || leaf.id >= 0 || (config_.simd && leaf.aligned < group_width_[id]))
    return nullptr;
  const auto found = group_values_.find({id, leaf.offset / group_width_[id]});
  return found == group_values_.end() ? nullptr : &found->second;
}

void RowLowering::share_in_group(NodeId id, const Leaf& leaf, const Values& values) {
  if (!spans_chunks(id) || column_shift_) return;
  const std::int64_t width = group_width_[id];
  if (leaf.id < 0) {
    if (!config_.simd || leaf.aligned >= width) group_values_[{id, leaf.offset / width}] = values;
    return;
  }
  for (std::int64_t offset = leaf.offset / width * width, end = offset + width; offset < end;
       offset += chunk_columns()) {
    if (offset >= config_.columns) break;
    const std::int64_t stripe = offset / stripe_step(), part = offset % config_.stripe() / chunk_columns();
    const Leaf other{.id = static_cast<int>(stripe) * chunks() + static_cast<int>(part)};
    if (ValuesByNode& memory = memory_of(id, other); !memory.find(id)) memory.put(id, values);
  }
}

// [i, j / g] and [i, j % g] results: the first column of a group has its entry.
void RowLowering::store_groups(std::size_t r, const Leaf& leaf) {
  const Output& result = program_.results[r];
  const std::size_t array = program_.array_of_result(r);
  const AxisIndexing column = *fixed_axis(program_, result.spread.column, config_.columns);
  const Values values = chunk(result.value, leaf);
  const Reg first = b_.add(leaf.column, leaf.offset), pointer = row_pointer(array);
  const auto steps = column_steps_.find(array);
  auto place = [&](Reg entry) { return steps == column_steps_.end() ? entry : stepped(b_, steps->second, entry); };
  if (column.divide == config_.group && !column.wrap) {
    if (leaf.offset % config_.stripe()) return;
    b_.emit({.code = Do::StoreOne,
             .type = *result.type,
             .a = pointer,
             .b = place(b_.divide(first, column.divide)),
             .c = both(leaf.mask, b_.below(column_of_group_, 0, one_index_)),
             .values = {values[0]}});
    return;
  }
  if (!config_.simd) {
    // A thread's columns begin at a multiple of its vector, and whole groups have their entries side by side.
    const bool whole = !column.wrap && steps == column_steps_.end() && config_.vector % column.divide == 0;
    if (whole && config_.columns % config_.vector == 0) {
      Values entries;
      for (int e = 0; e < config_.vector; e += static_cast<int>(column.divide)) entries.push_back(values[e]);
      b_.emit({.code = entries.size() == 1 ? Do::StoreOne : Do::Store,
               .type = *result.type,
               .a = pointer,
               .b = b_.divide(first, column.divide),
               .c = leaf.mask,
               .values = entries});
      return;
    }
    for (int e = 0; e < config_.vector; ++e) {
      if (!column.wrap && column.divide % config_.vector == 0 && e > 0) break;
      const Reg here = b_.add(first, e);
      const Reg inside = column.wrap ? b_.below(here, 0, b_.index(column.wrap))
                                     : b_.below(b_.remainder(here, column.divide), 0, one_index_);
      const Reg entry = column.wrap ? here : b_.divide(here, column.divide);
      const Reg mask = both(leaf.mask, inside);
      b_.emit({.code = Do::StoreOne,
               .type = *result.type,
               .a = pointer,
               .b = place(entry),
               .c = mask,
               .values = {values[static_cast<std::size_t>(e)]}});
    }
    return;
  }
  if (column.wrap && steps == column_steps_.end()) {
    const Reg end = b_.index(std::min(column.wrap, config_.columns));
    b_.when_less(first, end, [&] {
      const Reg mask = b_.below(first, 0, end);
      b_.emit({.code = Do::Store, .type = *result.type, .a = pointer, .b = first, .c = mask, .values = values});
    });
    return;
  }
  auto store_one = [&](Reg here, Reg value) {
    auto store = [&](Reg entry) {
      b_.emit({.code = Do::StoreOne, .type = *result.type, .a = pointer, .b = place(entry), .values = {value}});
    };
    if (column.wrap) return b_.when_less(here, b_.index(column.wrap), [&] { store(here); });
    const Reg rest = b_.index(Do::IndexRemainder, here, column.divide);
    b_.when_less(rest, one_index_, [&] { store(b_.index(Do::IndexDivide, here, column.divide)); });
  };
  if (!column.wrap && one_entry_a_chunk(column.divide)) {
    if (!may_be_absent(leaf)) return store_one(first, values[0]);
    return b_.when_less(first, columns_, [&] { store_one(first, values[0]); });
  }
  b_.emit({.code = Do::Store, .type = *program_.compute, .space = Space::Scratch, .imm = lanes_at_, .values = values});
  lane_by_lane(leaf, [&](Reg here, Reg lane) {
    Reg value = b_.fresh(Bank::Lane);
    b_.emit({.code = Do::LoadOne,
             .type = *program_.compute,
             .space = Space::Scratch,
             .dst = value,
             .b = lane,
             .imm = lanes_at_});
    store_one(here, value);
  });
}

// Of [i, j % g] with more entries than there are columns: +0.0 where no column stands.
void RowLowering::store_empty_groups(std::size_t r) {
  const Output& result = program_.results[r];
  if (!is_of_groups(result.spread)) return;
  const std::int64_t wrap = fixed_axis(program_, result.spread.column, config_.columns)->wrap;
  if (wrap <= config_.columns) return;
  const std::size_t array = program_.array_of_result(r);
  const auto steps = column_steps_.find(array);
  Reg base = b_.copy(b_.index(config_.columns)), end = b_.index(wrap);
  const Reg none = b_.number(0.0);
  b_.repeat_while_less(base, end, [&] {
    const Reg entry = config_.simd ? base : b_.add(base, row_owner_);
    Instr store{.code = Do::StoreOne, .type = *result.type, .a = row_pointer(array), .values = {none}};
    if (!config_.simd) store.c = both(b_.below(entry, 0, end), state_.exists);
    store.b = steps == column_steps_.end() ? entry : stepped(b_, steps->second, entry);
    b_.emit(std::move(store));
    b_.increase(base, config_.simd ? 1 : config_.lanes * config_.groups);
  });
}

}  // namespace trireme
