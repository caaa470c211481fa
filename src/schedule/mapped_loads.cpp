// Loads from divided, wrapped and rotated columns, and from columns that do not lie side by side. Thread machines load
// blocks of a thread's columns, or compute each element's place; simd machines go lane by lane through a vector of
// scratch, unless the whole vector lies together.
#include <numeric>

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

// Where a leaf's first column stands, of divided or wrapped columns: a number in unrolled rows. In loops, leaves
// between two multiples of `together` columns share one Index, from which their entries go on.
RowLowering::Place RowLowering::place_of(const ColumnMap& map, const AxisIndexing& axis, const Leaf& leaf) {
  if (leaf.id >= 0) return {zero_, axis.entry((leaf.offset + map.rotate) % config_.columns)};
  std::int64_t together = std::gcd(leaf.aligned, axis.divide > 1 ? axis.divide : axis.wrap);
  if (map.rotate) together = std::gcd(std::gcd(together, map.rotate), config_.columns);
  const std::int64_t into = together ? leaf.offset % together : 0;
  auto [it, is_new] = places_.try_emplace({axis.divide, axis.wrap, map.rotate, leaf.column.id, leaf.offset - into});
  if (is_new) it->second = mapped_column(map, b_.add(leaf.column, leaf.offset - into));
  return {it->second, axis.divide > 1 ? 0 : into};
}

// A vector of divided columns that are not fewer than its lanes stands on at most two entries: its first lane's and its
// last one's. In loops, operands with such columns share what says so.
RowLowering::TwoEntries RowLowering::two_entries(const ColumnMap& map, const AxisIndexing& axis, const Leaf& leaf) {
  auto make = [&]() -> TwoEntries {
    const Reg begin = b_.add(leaf.column, leaf.offset), end = b_.add(begin, config_.lanes - 1);
    const Reg first = may_be_absent(leaf) ? b_.index(Do::IndexMin, begin, config_.columns - 1) : begin;
    const Reg on_first = mapped_column(map, first);
    const Reg on_last = mapped_column(map, b_.index(Do::IndexMin, end, config_.columns - 1));
    const Reg into = axis.wrap ? b_.remainder(begin, axis.divide, columns_are_narrow())
                               : b_.index(Do::IndexSub, begin, b_.mul(on_first, axis.divide));
    return {on_first, on_last, b_.below(into, 0, b_.index(axis.divide))};
  };
  if (leaf.id >= 0) return make();
  auto [it, is_new] = two_entries_.try_emplace({axis.divide, axis.wrap, leaf.column.id, leaf.offset});
  if (is_new) it->second = make();
  return it->second;
}

// A vector begins at a multiple of its lanes, unless groups take the place of stripes: where divisors, rotations and
// lanes divide each other, it stands on one entry or on entries side by side.
Values RowLowering::load_by_lanes(const Instr& from, const ColumnMap& map, const Leaf& leaf) {
  auto gather = [&](Reg value) {
    lane_by_lane(leaf, [&](Reg column, Reg place) { put_lane(load_entry(from, map, column, {}), place); });
    take_lanes(value, leaf.mask);
  };
  const Reg value = b_.fresh(Bank::Lane);
  if (map.steps) {
    gather(value);
    return {value};
  }
  const std::int64_t lanes = config_.lanes;
  const AxisIndexing axis = fixed_axis(program_, map.axis, config_.columns).value();
  const bool whole = keeps_vectors(map.rotate);
  auto at = [&](const Place& place) {
    Instr load = from;
    load.b = place.index;
    load.imm += place.beyond * static_cast<std::int64_t>(bytes(load.type));
    return load;
  };
  auto load_from = [&](const Place& place) {
    Instr load = at(place);
    load.c = leaf.mask, load.values = {value};
    b_.emit(std::move(load));
  };
  auto entry_at = [&](Reg column) {
    if (may_be_absent(leaf)) column = b_.index(Do::IndexMin, column, config_.columns - 1);
    return load_entry(from, map, column, {});
  };
  const Reg first = b_.add(leaf.column, leaf.offset);
  if (axis.divide > 1) {
    if (whole && axis.divide % lanes == 0 && !may_be_absent(leaf)) {
      Instr load = at(place_of(map, axis, leaf));
      load.code = Do::LoadOne, load.dst = value;
      b_.emit(std::move(load));
    } else if (!map.rotate && one_entry_a_chunk(axis.divide)) {
      return {entry_at(first)};
    } else if (!map.rotate && axis.divide >= lanes) {
      const TwoEntries entries = two_entries(map, axis, leaf);
      auto entry = [&](Reg place) {
        Instr load = from;
        load.code = Do::LoadOne, load.b = place;
        return b_.into(Bank::Lane, std::move(load));
      };
      const Reg first_entry = entry(entries.first), last_entry = entry(entries.last);
      return {b_.primitive(Op::Select, {entries.on_first, first_entry, last_entry})};
    } else {
      gather(value);
    }
  } else if (whole && axis.wrap % lanes == 0) {
    load_from(place_of(map, axis, leaf));
  } else {
    const Place place = place_of(map, axis, leaf);
    const Reg begin = b_.add(place.index, place.beyond);
    Reg end = b_.index(axis.wrap ? axis.wrap : config_.columns);
    if (axis.wrap && map.rotate)  // the row may end sooner
      end = b_.index(Do::IndexMin, end, b_.add(begin, b_.index(Do::IndexSub, columns_, rotated_column(map, first))));
    b_.when_less(
        b_.add(begin, lanes - 1), end, [&] { load_from(place); }, [&] { gather(value); });
  }
  return {value};
}

}  // namespace trireme
