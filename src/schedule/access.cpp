// Accesses that are not plain: divided, wrapped and rotated indices, columns that do not lie side by side, and
// comparisons that are made in integers. mapped_loads.cpp loads by them.
#include <bit>

#include "ir/index_arithmetic.hpp"
#include "ir/integers.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {

// Divisors are arithmetic of numbers, and of n.
std::optional<std::int64_t> RowLowering::fixed_divisor(NodeId id) const {
  if (id == no_node) return std::nullopt;
  std::optional<std::int64_t> columns;
  if (config_.columns) columns = config_.columns;
  auto value = index_value(program_, id, {columns}, a_divisor);
  return value ? *value : std::nullopt;
}

void RowLowering::evaluate_divisors() {
  auto code_of = [](Op op) {
    return op == Op::Div ? Do::IndexDivide : op == Op::Mul ? Do::IndexMul : op == Op::Add ? Do::IndexAdd : Do::IndexSub;
  };
  auto evaluate = [&](auto&& self, NodeId id) -> Reg {
    if (auto it = divisors_.find(id); it != divisors_.end()) return it->second;
    const Node& node = program_[id];
    Reg value;
    if (std::optional<std::int64_t> fixed = fixed_divisor(id)) {
      value = b_.index(*fixed);
    } else if (node.op == Op::ColumnCount) {
      value = columns_;
    } else {
      const bool negates = node.op == Op::Neg;
      const Reg a = negates ? zero_ : self(self, node.args[0]), b = self(self, node.args[negates ? 0 : 1]);
      value = b_.index(code_of(node.op), a, b);
    }
    return divisors_[id] = value;
  };
  auto evaluate_axis = [&](const Axis& axis) {
    for (NodeId id : {axis.divide, axis.wrap})
      if (id != no_node) evaluate(evaluate, id);
  };
  for (const Operand& operand : program_.operands)
    evaluate_axis(operand.spread.row), evaluate_axis(operand.spread.column);
  for (const Stage& stage : stages_.sweeps)
    for (NodeId id : stage.groups) evaluate(evaluate, program_[id].args[1]);
  for (std::size_t k : used_operands())
    if (layout_.array(k).strided) column_steps_[k] = column_steps(b_, layout_.array(k), k);
  for (std::size_t r = 0; r < program_.results.size(); ++r)
    if (const std::size_t k = program_.array_of_result(r); layout_.array(k).strided && writes(r))
      column_steps_[k] = column_steps(b_, layout_.array(k), k);
}

ColumnSteps column_steps(KernelBuilder& b, const ArrayLayout& layout, std::size_t array) {
  ColumnSteps steps{b.slot_of(array, Slot::What::ColumnStride), {}};
  for (int j = 0; j < layout.column_jumps; ++j) {
    int jump = first_column_jump + j;
    const Reg every = b.slot_of(array, Slot::What::Every, jump);
    steps.jumps.emplace_back(every, b.slot_of(array, Slot::What::Jump, jump));
  }
  return steps;
}

Reg stepped(KernelBuilder& b, const ColumnSteps& steps, Reg column) {
  Reg place = b.index(Do::IndexMul, column, steps.stride);
  for (const auto& [every, elements] : steps.jumps)
    place = b.add(place, b.index(Do::IndexMul, b.index(Do::IndexDivide, column, every), elements));
  return place;
}

bool RowLowering::axis_is(const Axis& axis, const AxisIndexing& row) const {
  auto value = [&](NodeId id, std::int64_t none) { return id == no_node ? none : fixed_divisor(id).value_or(-1); };
  return value(axis.divide, 1) == row.divide && value(axis.wrap, 0) == row.wrap;
}

Reg RowLowering::mapped_row(const Axis& axis) {
  if (axis.plain()) return row_;
  if (entry_ && axis_is(axis, sums_[0].what->where.row)) return entry_;
  auto [it, is_new] = mapped_rows_.try_emplace({axis.divide, axis.wrap});
  if (!is_new) return it->second;
  Reg row = row_;
  return it->second = entry_on(axis, row);
}

// The entry of an axis that an index stands on.
Reg RowLowering::entry_on(const Axis& axis, Reg index, bool narrow) {
  if (axis.divide != no_node) {
    const std::optional<std::int64_t> by = fixed_divisor(axis.divide);
    index = by ? b_.divide(index, *by, narrow) : b_.index(Do::IndexDivide, index, divisor(axis.divide));
  }
  if (axis.wrap != no_node) {
    const std::optional<std::int64_t> by = fixed_divisor(axis.wrap);
    index = by ? b_.remainder(index, *by, narrow) : b_.index(Do::IndexRemainder, index, divisor(axis.wrap));
  }
  return index;
}

RowLowering::ColumnMap RowLowering::map_of_operand(std::size_t operand, std::int64_t rotate) {
  ColumnMap map{.axis = program_.operands[operand].spread.column, .rotate = rotate};
  if (auto it = column_steps_.find(operand); it != column_steps_.end()) map.steps = &it->second;
  return map;
}

Reg RowLowering::rotated_column(const ColumnMap& map, Reg column) {
  if (!map.rotate) return column;
  const Reg turned = b_.add(column, map.rotate);
  return config_.columns ? b_.remainder(turned, config_.columns, columns_are_narrow())
                         : b_.index(Do::IndexRemainder, turned, columns_);
}

Reg RowLowering::mapped_column(const ColumnMap& map, Reg column) {
  column = entry_on(map.axis, rotated_column(map, column), columns_are_narrow());
  return map.steps ? stepped(b_, *map.steps, column) : column;
}

// One vector of scratch: filled lane by lane, then taken as a whole.
void RowLowering::put_lane(Reg value, Reg place) {
  b_.emit({.code = Do::StoreOne,
           .type = *program_.compute,
           .space = Space::Scratch,
           .b = place,
           .imm = lanes_at_,
           .values = {value}});
}

void RowLowering::take_lanes(Reg value, Reg mask) {
  b_.emit({.code = Do::Load,
           .type = *program_.compute,
           .space = Space::Scratch,
           .c = mask,
           .imm = lanes_at_,
           .values = {value}});
}

Values RowLowering::rotated_index(const Node& node, std::int64_t rotate, const Leaf& leaf) {
  ColumnMap map{.axis = {.present = true}, .rotate = rotate};
  auto at = [&](Reg column) {
    if (node.op == Op::Random) return random_at(node, column);
    return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = column});
  };
  if (!config_.simd) {
    const Reg first = b_.add(leaf.column, leaf.offset);
    Values values;
    for (const RotatedBlock& block : rotated_blocks(rotate)) {
      map.rotate = block.rotate;
      const Reg begin = mapped_column(map, first);
      for (int e = block.low; e < block.high; ++e) values.push_back(at(b_.add(begin, e)));
    }
    if (values.empty())
      for (int e = 0; e < config_.vector; ++e) values.push_back(at(mapped_column(map, b_.add(first, e))));
    return values;
  }
  if (node.op == Op::ColumnIndex && keeps_vectors(rotate)) {
    const Place place = place_of(map, {.present = true}, leaf);
    return {b_.into(Bank::Lane, {.code = Do::LaneColumn, .a = place.index, .imm = place.beyond})};
  }
  lane_by_lane(leaf, [&](Reg column, Reg place) { put_lane(at(mapped_column(map, column)), place); });
  Reg value = b_.fresh(Bank::Lane);
  take_lanes(value, leaf.mask);
  return {value};
}

// Columns one by one from a place on: a leaf's own, and on simd machines those of whole vectors elsewhere.
std::optional<RowLowering::Place> RowLowering::columns_in_order(NodeId id, const Leaf& leaf) {
  if (program_[id].op == Op::ColumnIndex) return Place{leaf.column, leaf.offset};
  if (program_[id].op != Op::Rotate || program_[program_[id].args[0]].op != Op::ColumnIndex || !config_.simd) return {};
  const ColumnMap map{.axis = {.present = true}, .rotate = rotation(id)};
  if (!keeps_vectors(map.rotate)) return {};
  return place_of(map, {.present = true}, leaf);
}

void RowLowering::store_mapped(Type type, Reg pointer, const ColumnMap& map, const Leaf& leaf, const Values& values) {
  if (!config_.simd) {
    Reg first = b_.add(leaf.column, leaf.offset);
    for (int e = 0; e < config_.vector; ++e)
      b_.emit({.code = Do::StoreOne,
               .type = type,
               .a = pointer,
               .b = mapped_column(map, b_.add(first, e)),
               .c = leaf.mask,
               .values = {values[e]}});
    return;
  }
  b_.emit({.code = Do::Store, .type = *program_.compute, .space = Space::Scratch, .imm = lanes_at_, .values = values});
  lane_by_lane(leaf, [&](Reg column, Reg place) {
    Reg value = b_.fresh(Bank::Lane);
    b_.emit({.code = Do::LoadOne,
             .type = *program_.compute,
             .space = Space::Scratch,
             .dst = value,
             .b = place,
             .imm = lanes_at_});
    b_.emit({.code = Do::StoreOne, .type = type, .a = pointer, .b = mapped_column(map, column), .values = {value}});
  });
}

// An integer that is the same for the whole row, as an Index.
Reg RowLowering::integer_of_row(NodeId id) {
  const Node& node = program_[id];
  switch (node.op) {
    case Op::RowIndex: return row_;
    case Op::ColumnCount: return columns_;
    case Op::Number: return b_.index(static_cast<std::int64_t>(node.number()));
    case Op::Rotate: return integer_of_row(node.args[0]);
    default: {
      const Operand& operand = program_.operands[node.payload];
      bool by_row = operand.spread.row.present;
      Reg pointer = by_row ? row_pointer(node.payload) : b_.pointer_to(node.payload);
      return b_.into(Bank::Index, {.code = Do::IndexLoad,
                                   .type = *operand.type,
                                   .a = pointer,
                                   .c = both(by_row ? state_.exists : Reg{}, inside_of(node.payload))});
    }
  }
}

// Masks of a < b; simd machines have one Index for all lanes, so the answer travels as a number.
Values RowLowering::mask_less(Reg a, Reg b) {
  if (!config_.simd) return {b_.below(a, 0, b)};
  Reg answer = b_.number(0);
  b_.when_less(a, b,
               [&] { b_.emit({.code = Do::LaneConstant, .dst = answer, .imm = std::bit_cast<std::int64_t>(1.0)}); });
  return {b_.primitive(Op::Less, {b_.number(0), answer})};
}

// May be too large to have 1 added to it, or to be taken from another.
bool RowLowering::is_large(NodeId id) const {
  const Node& node = program_[id];
  if (node.op == Op::Rotate) return is_large(node.args[0]);
  return node.op == Op::Operand && program_.operands[node.payload].type == Type::I64;
}

Reg RowLowering::integer_condition_of_row(const Node& node) {
  Reg a = integer_of_row(node.args[0]), b = integer_of_row(node.args[1]);
  return integer_mask(node.op, a, b, is_large(node.args[0]) || is_large(node.args[1]));
}

// Rounding moves no distance across 0.
Reg RowLowering::integer_mask(Op op, Reg a, Reg b, bool large) {
  if (op == Op::Equal) return b_.equal(a, 0, b);
  if (config_.simd && !large) {
    const Reg distance = b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = b_.index(Do::IndexSub, a, b)});
    return b_.primitive(op, {distance, b_.number(0)});
  }
  if (op == Op::Less) return mask_less(a, b)[0];
  if (large) return b_.primitive(Op::Not, {mask_less(b, a)[0]});
  return mask_less(a, b_.add(b, 1))[0];
}

// An integer of the row, or of one of its columns.
Reg RowLowering::integer_at(NodeId id, Reg column, Reg mask) {
  const bool is_rotated = program_[id].op == Op::Rotate;
  const Node& leaf = program_[is_rotated ? program_[id].args[0] : id];
  if (!leaf.by_column) return integer_of_row(id);
  if (is_rotated) column = rotated_column({.axis = {.present = true}, .rotate = rotation(id)}, column);
  if (leaf.op == Op::ColumnIndex) return column;
  const bool by_row = program_.operands[leaf.payload].spread.row.present;
  Reg pointer = by_row ? row_pointer(leaf.payload) : column_pointers_.at(leaf.payload);
  return b_.into(Bank::Index, {.code = Do::IndexLoad,
                               .type = *program_.operands[leaf.payload].type,
                               .a = pointer,
                               .b = mapped_column(map_of_operand(leaf.payload, 0), column),
                               .c = both(mask, inside_of(leaf.payload))});
}

// A value that varies by column, of one column.
Reg RowLowering::at_column(NodeId id, Reg column, std::unordered_map<NodeId, Reg>& known) {
  const Node& node = program_[id];
  if (!node.by_column) return one(id);
  if (auto it = known.find(id); it != known.end()) return it->second;
  const bool is_rotated = node.op == Op::Rotate;
  const Node& leaf = program_[is_rotated ? node.args[0] : id];
  Reg value;
  if (leaf.op == Op::Random) {
    const Reg place = is_rotated ? rotated_column({.axis = {.present = true}, .rotate = rotation(id)}, column) : column;
    value = random_at(leaf, place);
  } else if (leaf.op == Op::Operand) {
    const Operand& operand = program_.operands[leaf.payload];
    Reg place = mapped_column(map_of_operand(leaf.payload, is_rotated ? rotation(id) : 0), column);
    if (layout_.array(leaf.payload).backwards) place = b_.index(Do::IndexSub, zero_, place);
    value = b_.into(Bank::Lane,
                    {.code = Do::LoadOne,
                     .type = *operand.type,
                     .a = operand.spread.row.present ? row_pointer(leaf.payload) : column_pointers_.at(leaf.payload),
                     .b = place,
                     .c = operand.spread.row.present ? state_.exists : Reg{}});
    value = inside_or_0(leaf.payload, {value})[0];
  } else if (leaf.op == Op::ColumnIndex) {
    value = b_.into(
        Bank::Lane,
        {.code = Do::LaneFromIndex,
         .a = is_rotated ? rotated_column({.axis = {.present = true}, .rotate = rotation(id)}, column) : column});
  } else if (compares_integers(program_, node)) {
    Reg a = integer_at(node.args[0], column, state_.exists);
    value = integer_mask(node.op, a, integer_at(node.args[1], column, state_.exists),
                         is_large(node.args[0]) || is_large(node.args[1]));
  } else {
    Reg args[3];
    for (int k = 0; k < node.arity; ++k) args[k] = at_column(node.args[k], column, known);
    value = primitive(b_, node, args[0], args[1], args[2]);
  }
  return known[id] = value;
}

Reg RowLowering::pick_column(const Node& node) {
  Reg wanted = integer_of_row(node.args[1]);
  const Reg inside = is_inside(wanted, columns_), column = nearest_inside(wanted, columns_);
  std::unordered_map<NodeId, Reg> known;
  Reg value = at_column(node.args[0], column, known), none = b_.number(0);
  if (config_.columns != 1) {  // the sum's other terms are +0: they change a -0, unless there are none
    Reg rest = none;
    if (!config_.columns) {
      Reg alone = mask_less(columns_, b_.index(2))[0];
      rest = b_.primitive(Op::Select, {alone, b_.number(-0.0), none});
    }
    value = b_.primitive(Op::Add, {value, rest});
  }
  return b_.primitive(Op::Select, {inside, value, none});
}

// An unrolled chunk's columns are the thread's first one and numbers that are known: how far a row's integer lies from
// the first is made once a row, and is exact as a lane.
bool RowLowering::compares_distances() const { return !config_.simd && config_.stripes && config_.columns <= 1 << 24; }

Reg RowLowering::distance_of(NodeId id) {
  auto [it, is_new] = distances_.try_emplace(id);
  if (!is_new) return it->second;
  Reg u = b_.index(Do::IndexMax, integer_of_row(id), -1);
  u = b_.index(Do::IndexMin, u, columns_);
  const Reg distance = b_.index(Do::IndexSub, u, thread_column_);
  return it->second = b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = distance});
}

// An integer of the row that columns are compared with. No column is negative, or 2^62.
Reg RowLowering::integer_for_columns(NodeId id) {
  if (auto it = row_integers_.find(id); it != row_integers_.end()) return it->second;
  Reg u = integer_of_row(id);
  if (!is_large(id)) return u;
  u = b_.index(Do::IndexMax, u, -1);
  return b_.index(Do::IndexMin, u, std::int64_t{1} << 62);
}

// Simd machines: what a sweep compares its columns with, made once before it.
void RowLowering::make_row_integers(const std::vector<NodeId>& nodes) {
  row_integers_.clear();
  forget_places();
  if (!config_.simd) return;
  auto column = [&](NodeId id) {
    return program_[program_[id].op == Op::Rotate ? program_[id].args[0] : id].op == Op::ColumnIndex;
  };
  for (NodeId id : nodes) {
    const Node& node = program_[id];
    if (!compares_integers(program_, node)) continue;
    for (int k : {0, 1})
      if (const NodeId other = node.args[1 - k]; column(node.args[k]) && !program_[other].by_column)
        row_integers_[other] = integer_for_columns(other);
  }
}

// Simd machines: how far a row's integer lies from a column, the same in all lanes. Rounding keeps the order of
// integers and moves none across a small one, so that the columns from this one on, counted from it, compare with it
// as with the integer.
Reg RowLowering::distance_from(NodeId id, Reg column) {
  auto [it, is_new] = column_distances_.try_emplace({id, column.id});
  if (!is_new) return it->second;
  const Reg distance = b_.index(Do::IndexSub, integer_for_columns(id), column);
  return it->second = b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = distance});
}

Values RowLowering::integer_condition(const Node& node, const Leaf& leaf) {
  const std::optional<Place> a_columns = columns_in_order(node.args[0], leaf);
  const std::optional<Place> b_columns = columns_in_order(node.args[1], leaf);
  auto varies = [&](NodeId id, bool in_order) { return program_[id].by_column && !in_order; };
  Values masks;
  if (varies(node.args[0], !!a_columns) || varies(node.args[1], !!b_columns) || (a_columns && b_columns)) {
    // Elements of memory: each by itself.
    const bool large = is_large(node.args[0]) || is_large(node.args[1]);
    // `a < b`, `a <= b` as `a < b + 1` or `not (b < a)`, `a == b` as both.
    auto compare = [&](Reg a, Reg b, auto&& yes) {
      const auto no = [] {};
      if (node.op == Op::Less) b_.when_less(a, b, yes);
      else if (large && node.op == Op::LessEqual) b_.when_less(b, a, no, yes);
      else if (large) b_.when_less(b, a, no, [&] { b_.when_less(a, b, no, yes); });
      else if (node.op == Op::LessEqual) b_.when_less(a, b_.add(b, 1), yes);
      else b_.when_less(a, b_.add(b, 1), [&] { b_.when_less(b, b_.add(a, 1), yes); });
    };
    if (!config_.simd) {
      Reg first = b_.add(leaf.column, leaf.offset);
      for (int e = 0; e < config_.vector; ++e) {
        Reg column = b_.add(first, e);
        Reg a = integer_at(node.args[0], column, leaf.mask), b = integer_at(node.args[1], column, leaf.mask);
        masks.push_back(integer_mask(node.op, a, b, large));
      }
      return masks;
    }
    Reg yes = b_.number(1), no = b_.number(0);
    lane_by_lane(leaf, [&](Reg column, Reg place) {
      Reg answer = b_.fresh(Bank::Lane);
      b_.assign(answer, no);
      compare(integer_at(node.args[0], column, {}), integer_at(node.args[1], column, {}),
              [&] { b_.assign(answer, yes); });
      put_lane(answer, place);
    });
    Reg answers = b_.fresh(Bank::Lane);
    take_lanes(answers, leaf.mask);
    return {b_.primitive(Op::Less, {no, answers})};
  }
  const bool a_column = a_columns.has_value();
  const NodeId other = node.args[a_column ? 1 : 0];
  if (compares_distances()) {
    const Reg distance = distance_of(other);
    for (int e = 0; e < config_.vector; ++e) {
      const Reg column = b_.number(static_cast<double>(leaf.offset + e));
      masks.push_back(node.op == Op::Equal || a_column ? b_.primitive(node.op, {column, distance})
                                                       : b_.primitive(node.op, {distance, column}));
    }
    return masks;
  }
  const Place columns = a_column ? *a_columns : *b_columns;
  if (config_.simd) {
    const bool near = columns.beyond + config_.lanes <= 1 << 23;
    const Reg distance = distance_from(other, near ? columns.index : b_.add(columns.index, columns.beyond));
    const Reg column = b_.into(Bank::Lane, {.code = Do::LaneColumn, .imm = near ? columns.beyond : 0});
    return {a_column ? b_.primitive(node.op, {column, distance}) : b_.primitive(node.op, {distance, column})};
  }
  // j against something of the row: j < u is a mask of columns already.
  const Reg u = integer_for_columns(other);
  const Reg next = node.op == Op::Equal ? Reg{} : b_.add(u, 1);
  for (int e = 0; e < config_.vector; ++e) {
    auto column_below = [&](Reg limit) { return b_.below(columns.index, columns.beyond + e, limit); };
    auto not_ = [&](Reg mask) { return b_.primitive(Op::Not, {mask}); };
    if (node.op == Op::Equal) masks.push_back(b_.equal(columns.index, columns.beyond + e, u));
    else if (node.op == Op::Less) masks.push_back(a_column ? column_below(u) : not_(column_below(next)));
    else masks.push_back(a_column ? column_below(next) : not_(column_below(u)));
  }
  return masks;
}

}  // namespace trireme
