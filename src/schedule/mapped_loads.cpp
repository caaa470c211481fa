// Loads from divided, wrapped and rotated columns, and from columns that do not lie side by side. Thread machines load
// blocks of a thread's columns, or compute each element's place; simd machines go lane by lane through a vector of
// scratch, unless the whole vector lies together.
#include "schedule/row_lowering.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {

Values RowLowering::load_mapped(Type type, Reg pointer, const ColumnMap& map, const Leaf& leaf) {
  return load_mapped({.code = Do::Load, .type = type, .a = pointer}, map, leaf);
}

// `from`: where the row begins.
Values RowLowering::load_mapped(const Instr& from, const ColumnMap& map, const Leaf& leaf) {
  return config_.simd ? load_by_lanes(from, map, leaf) : load_by_thread(from, map, leaf);
}

Reg RowLowering::load_entry(const Instr& from, const ColumnMap& map, Reg column, Reg mask) {
  Instr load = from;
  load.code = Do::LoadOne;
  load.b = mapped_column(map, column), load.c = mask;
  return b_.into(Bank::Lane, std::move(load));
}

// A thread's columns begin at a multiple of its vector; rotated, they are the end of one such block and the beginning
// of the next. None where the row's last block is not whole.
std::vector<RowLowering::RotatedBlock> RowLowering::rotated_blocks(std::int64_t rotate) const {
  const int vector = config_.vector, into = static_cast<int>(rotate % vector);
  if (rotate && config_.columns % vector) return {};
  std::vector<RotatedBlock> blocks = {{.rotate = rotate - into, .low = into, .high = vector}};
  if (into) blocks.push_back({.rotate = (rotate - into + vector) % config_.columns, .low = 0, .high = into});
  return blocks;
}

// A block stands on one entry, or on several side by side, where divisors and the vector divide each other.
Values RowLowering::load_by_thread(const Instr& from, const ColumnMap& map, const Leaf& leaf) {
  const Reg first = b_.add(leaf.column, leaf.offset);
  const AxisIndexing axis = fixed_axis(program_, map.axis, config_.columns).value();
  const std::int64_t entries = map.steps ? 0 : axis.entries_of_block(config_.vector);
  Values values;
  auto load_block = [&](const RotatedBlock& block) {
    const ColumnMap at{.axis = map.axis, .rotate = block.rotate};
    if (entries == 1) {
      const Reg entry = load_entry(from, at, first, leaf.mask);
      for (int e = block.low; e < block.high; ++e) values.push_back(entry);
      return;
    }
    if (block.high - block.low == 1) return values.push_back(load_entry(from, at, b_.add(first, block.low), leaf.mask));
    Instr load = from;
    load.b = mapped_column(at, first), load.c = leaf.mask;
    for (std::int64_t k = 0; k < entries; ++k) load.values.push_back(b_.fresh(Bank::Lane));
    for (int e = block.low; e < block.high; ++e) values.push_back(load.values[e / axis.divide]);
    b_.emit(std::move(load));
  };
  if (entries)
    for (const RotatedBlock& block : rotated_blocks(map.rotate)) load_block(block);
  if (!values.empty()) return values;
  if (!map.steps && !map.rotate && axis.divide >= config_.vector) {  // at most two entries: the first's, the last's
    const Reg last = b_.add(first, config_.vector - 1);
    const Reg low = load_entry(from, map, first, leaf.mask), high = load_entry(from, map, last, leaf.mask);
    const Reg into = b_.remainder(first, axis.divide, columns_are_narrow()), end = b_.index(axis.divide);
    values.push_back(low);
    for (int e = 1; e < config_.vector; ++e) {
      const Reg before = b_.below(into, e, end);
      values.push_back(b_.primitive(Op::Select, {before, low, high}));
    }
    return values;
  }
  for (int e = 0; e < config_.vector; ++e) values.push_back(load_entry(from, map, b_.add(first, e), leaf.mask));
  return values;
}

Values RowLowering::load_by_lanes(const Instr& from, const ColumnMap& map, const Leaf& leaf) {
  Reg first = b_.add(leaf.column, leaf.offset);
  auto load_one = [&](Reg column, Reg dst) {
    Instr load = from;
    load.code = Do::LoadOne;
    load.dst = dst, load.b = column;
    b_.emit(std::move(load));
  };
  auto load_all = [&](Reg column, Reg mask, Values values) {
    Instr load = from;
    load.b = column, load.c = mask, load.values = std::move(values);
    b_.emit(std::move(load));
  };
  Reg value = b_.fresh(Bank::Lane);
  auto gather = [&] {
    lane_by_lane(leaf, [&](Reg column, Reg place) { put_lane(load_entry(from, map, column, {}), place); });
    take_lanes(value, leaf.mask);
  };
  if (map.steps) {
    gather();
  } else if (!map.rotate && one_entry_a_chunk(fixed_divisor(map.axis.divide).value_or(1))) {
    if (may_be_absent(leaf)) first = b_.index(Do::IndexMin, first, b_.index(Do::IndexSub, columns_, one_index_));
    load_one(mapped_column(map, first), value);  // one entry for all lanes
  } else if (map.axis.divide != no_node) {
    const Reg last_lane = b_.add(first, config_.lanes - 1);
    Reg last = b_.index(Do::IndexMin, last_lane, b_.index(Do::IndexSub, columns_, one_index_));
    // One entry for all lanes: no turn of the rotation between the first and the last, and the same quotient.
    Reg begin = rotated_column(map, first), to = rotated_column(map, last);
    auto quotient = [&](Reg column) { return entry_on({.present = true, .divide = map.axis.divide}, column); };
    auto squared_difference = [&](Reg a, Reg b) {
      Reg difference = b_.index(Do::IndexSub, a, b);
      return b_.index(Do::IndexMul, difference, difference);
    };
    const Reg last_entry = quotient(to);
    Reg apart = squared_difference(last_entry, quotient(begin));
    if (map.rotate) {
      const Reg rotated_by = b_.index(Do::IndexSub, to, begin);
      apart = b_.add(apart, squared_difference(rotated_by, b_.index(Do::IndexSub, last, first)));
    }
    b_.when_less(
        apart, one_index_, [&] { load_one(mapped_column(map, first), value); }, gather);
  } else {
    Reg from_column = mapped_column(map, first);
    Reg end = map.axis.wrap != no_node ? divisor(map.axis.wrap) : columns_;
    if (map.axis.wrap != no_node && map.rotate)  // the row may end sooner
      end = b_.index(Do::IndexMin, end,
                     b_.add(from_column, b_.index(Do::IndexSub, columns_, rotated_column(map, first))));
    b_.when_less(
        b_.add(from_column, config_.lanes - 1), end, [&] { load_all(from_column, leaf.mask, {value}); }, gather);
  }
  return {value};
}

}  // namespace trireme
