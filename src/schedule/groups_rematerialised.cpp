// Reductions inside groups of columns on simd machines, in registers: a group's terms are made where they are added up,
// from operands that are read again and lie in the first cache. What groups come to stays in scratch: of neighbours a
// register each, or as many values as the group has columns where it is narrower, so that one load takes the end of a
// group and the begin of the next; of remainders one value each, and the first ones once more.
//
// Groups of neighbours are taken one after the other. What reaches beyond a group's end is other columns of the row, so
// that only the last groups of a row need masked loads. Of remainders the lanes are neighbouring groups, and rule 4's
// tree goes from register to register. Where a register has more lanes than there are remainders, it takes several of
// each: with m * g columns a period, the k-th column of a group has place k % m in the period k / m. Rule 4 adds up the
// highest bits of k first, which are those of the period; then places of a period are added up, halves to halves.
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "schedule/pair_sums.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/shape.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {
namespace {

// Columns after which remainders and registers both begin anew; of groups that fill registers, the groups.
std::int64_t period_of(std::int64_t by, int lanes) { return by >= lanes ? by : std::lcm<std::int64_t>(by, lanes); }

}  // namespace

// What groups come to, and room for a register that begins at the last of them; remainders come again after the last
// one.
std::int64_t RowLowering::rematerialised_places(const Groups& groups) const {
  const std::int64_t lanes = config_.lanes, by = groups.column.wrap;
  const std::int64_t values = by ? period_of(by, config_.lanes) : groups.wide * std::min(groups.column.divide, lanes);
  return whole(values + 2 * lanes, line_values);
}

// The term of `lanes` columns; those that the mask leaves out count as the identity. `inside`: they exist all the same.
Reg RowLowering::rematerialise_term(const Groups& groups, Reg column, std::int64_t offset, Reg mask, bool inside) {
  Leaf leaf{.column = column, .offset = offset, .aligned = 1, .back = back_from(column)};
  forget_places();
  if (!inside) leaf.mask = mask, leaf.limit = columns_;
  const Reg value = value_of_part(program_[groups.node].args[0], leaf)[0];
  return mask ? b_.primitive(Op::Select, {mask, value, b_.number(identity_of(groups.op))}) : value;
}

void RowLowering::sum_rematerialised(std::size_t k, const Groups& groups) {
  sweep_at_hand_ = k;
  anywhere_ = true;
  groups.column.wrap ? rematerialise_remainders(groups) : rematerialise_neighbours(groups);
  anywhere_ = false;
}

// Does sweep `k` have nothing but what is made after it, in loops of its own?
bool RowLowering::sweeps_for_nothing(std::size_t k) const {
  if (!config_.simd) return false;
  const Stage& stage = stages_.sweeps[k];
  const bool by_themselves =
      !stage.reduces() && stage.columns.empty() && stage.group_sums.empty() &&
      std::all_of(stage.stores.begin(), stage.stores.end(), [&](std::size_t r) { return stored_by_entry(r); }) &&
      std::all_of(stage.groups.begin(), stage.groups.end(), [&](NodeId id) { return apart(id); });
  return by_themselves && std::none_of(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.sweep == k; });
}

// j / g.
void RowLowering::rematerialise_neighbours(const Groups& groups) {
  const std::int64_t run = groups.column.divide, lanes = config_.lanes;
  const int chunks = static_cast<int>(next_power((run + lanes - 1) / lanes)), turns = turns_of_tree(chunks);
  const Reg columns = b_.index(config_.columns), width = b_.index(run);
  Reg entry = b_.copy(zero_), begin = b_.copy(zero_), place = b_.copy(zero_);
  const Reg last = b_.below(zero_, whole(run, lanes) - lanes, width);  // of a group's registers
  auto take_while = [&](std::int64_t end_entry, bool inside) {
    b_.repeat_while_less(entry, b_.index(end_entry), [&] {
      const Reg end = inside ? Reg{} : b_.index(Do::IndexMin, columns, b_.add(begin, run));
      Reg sum = tree_through_scratch(chunks, [&](Reg more, int k) -> std::optional<Reg> {
        const std::int64_t offset = k * lanes;
        if (offset >= run) return std::nullopt;
        const Reg further = more ? b_.mul(more, lanes) : Reg{}, column = more ? b_.add(begin, further) : begin;
        Reg mask;
        if (!inside) mask = b_.below(column, offset, end);
        else if (offset + turns * lanes > run) mask = more ? b_.below(further, offset, width) : last;
        return rematerialise_term(groups, column, offset, mask, inside);
      });
      sum = butterfly(groups.op, sum, static_cast<int>(std::min(lanes, next_power(run)) / 2), 1);
      Instr store = term_access(Do::Store, groups.values_at, place, {});
      store.values = {sum};
      b_.emit(std::move(store));
      b_.increase(entry, 1);
      b_.increase(begin, run);
      b_.increase(place, std::min(run, lanes));
    });
  };
  const std::int64_t reach = whole(run, turns * lanes);  // from a group's first column on
  const std::int64_t inside = config_.columns < reach ? 0 : (config_.columns - reach) / run + 1;
  if (inside > 0) take_while(inside, true);
  if (inside < groups.wide) take_while(groups.wide, false);
  read_on(groups, place);
}

// j % g.
void RowLowering::rematerialise_remainders(const Groups& groups) {
  const std::int64_t by = groups.column.wrap, lanes = config_.lanes, period = period_of(by, config_.lanes);
  const std::int64_t periods = (config_.columns + period - 1) / period, places = period / by;
  const std::int64_t in_stripe = contract::stripe / places, stripes = (periods + in_stripe - 1) / in_stripe;
  const Reg columns = b_.index(config_.columns);
  // Of a stripe's periods; `place`: in the first of them.
  auto over_periods = [&](Reg place, Reg stripe, bool inside) {
    const int count = static_cast<int>(next_power(std::min(periods, in_stripe))), turns = turns_of_tree(count);
    return tree_through_scratch(count, [&](Reg more, int k) -> std::optional<Reg> {
      if (!stripe && k >= periods) return std::nullopt;
      const bool all = inside || (!stripe && (k + turns - 1) * period + whole(period, lanes) <= config_.columns);
      Reg column = stripe ? b_.add(place, stripe) : place;
      if (more) column = b_.add(column, b_.mul(more, period));
      const Reg mask = all ? Reg{} : b_.below(column, k * period, columns);
      return rematerialise_term(groups, column, k * period, mask, all);
    });
  };
  auto of_stripe = [&](Reg place, Reg stripe) {
    if (!stripe) return over_periods(place, stripe, false);
    Reg sum = b_.fresh(Bank::Lane);
    b_.when_less(
        b_.add(stripe, in_stripe * period + lanes - 1), columns,
        [&] { b_.assign(sum, over_periods(place, stripe, true)); },
        [&] { b_.assign(sum, over_periods(place, stripe, false)); });
    return sum;
  };
  auto of_all = [&](auto&& sum) {
    if (stripes == 1) return sum(Reg{});
    const int levels = std::bit_width(static_cast<std::uint64_t>(stripes));
    return PairSums(b_, zero_, levels, groups.op).sum_one_by_one(zero_, b_.index(stripes), [&](Reg which) {
      return sum(b_.mul(which, in_stripe * period));
    });
  };
  auto store = [&](std::int64_t offset, Reg place, Reg value) {
    Instr instr = term_access(Do::Store, groups.values_at + offset * value_bytes(), place, {});
    instr.values = {value};
    b_.emit(std::move(instr));
  };
  auto load = [&](std::int64_t offset) { return load_term(groups.values_at + offset * value_bytes(), {}, {}); };
  auto each_register = [&](auto&& body) {
    Reg place = b_.copy(zero_);
    b_.repeat_while_less(place, b_.index(period), [&] {
      body(place);
      b_.increase(place, lanes);
    });
  };
  if (places == 1) {
    each_register([&](Reg place) { store(0, place, of_all([&](Reg stripe) { return of_stripe(place, stripe); })); });
  } else {
    const Reg first = of_all([&](Reg stripe) {
      each_register([&](Reg place) { store(0, place, of_stripe(place, stripe)); });
      if (period / 2 % lanes != 0) store(period, {}, load(0));  // the last register of a half reaches beyond it
      for (std::int64_t half = period / 2; half >= by; half /= 2)
        for (std::int64_t at = 0; at < half; at += lanes) {
          const Reg low = load(at), high = load(at + half);
          store(at, {}, combine(groups.op, low, high));
        }
      return load(0);
    });
    store(0, {}, first);
  }
  repeat_first(groups);
}

// A load that begins at a row's last columns reads on behind them, at `place`: numbers that nobody uses.
void RowLowering::read_on(const Groups& groups, Reg place) {
  Instr store = term_access(Do::Store, groups.values_at, place, {});
  store.values = {load_term(groups.values_at, {}, {})};
  b_.emit(std::move(store));
}

// After the last remainder the first ones come again.
void RowLowering::repeat_first(const Groups& groups) {
  const std::int64_t by = groups.column.wrap;
  const Reg first = load_term(groups.values_at, {}, {});
  for (std::int64_t at = by; at < by + config_.lanes; at += by) {
    Instr store = term_access(Do::Store, groups.values_at + at * value_bytes(), {}, {});
    store.values = {first};
    b_.emit(std::move(store));
  }
}

Reg RowLowering::quotient(Reg column, std::int64_t by) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(2 * (config_.columns + contract::stripe)));
  if (std::has_single_bit(static_cast<std::uint64_t>(by)) || bits > 31) return b_.divide(column, by);
  // Of numbers of so many bits: the product is below 2^63.
  const int shift = bits + std::bit_width(static_cast<std::uint64_t>(by - 1));
  return b_.index(Do::IndexShiftRight, b_.mul(column, (std::int64_t{1} << shift) / by + 1), shift);
}

Values RowLowering::load_rematerialised(const Groups& groups, const Leaf& leaf) {
  Reg column = b_.add(leaf.column, leaf.offset);
  const std::int64_t lanes = config_.lanes;
  if (const std::int64_t by = groups.column.wrap) {
    Reg place;  // none: the first
    if (anywhere_ || lanes % by != 0) place = b_.index(Do::IndexSub, column, b_.mul(quotient(column, by), by));
    return {load_term(groups.values_at, place, {})};
  }
  const std::int64_t by = groups.column.divide;
  if (may_be_absent(leaf)) column = b_.index(Do::IndexMin, column, config_.columns - 1);
  if (by <= lanes) return {load_term(groups.values_at, column, {})};
  const Reg entry = quotient(column, by), place = b_.mul(entry, lanes);
  if (one_entry_a_chunk(by)) return {load_term(groups.values_at, place, {})};
  const Reg inside = b_.index(Do::IndexSub, column, b_.mul(entry, by));
  const Reg beyond = b_.index(Do::IndexMax, b_.add(inside, lanes - by), zero_);  // lanes of the next group
  return {load_term(groups.values_at, b_.add(place, beyond), {})};
}

// What is made of groups alone and wanted at every column is made once a group: of remainders, and of neighbours that
// fill several registers. Narrower ones gain where it is stored by entries too.
void RowLowering::find_values_of_groups() {
  if (!config_.simd || apart_.groups.empty()) return;
  ColumnSpreads spreads(program_);
  std::vector<bool> goes_on(program_.size());  // is taken where there is no group of its own
  for (NodeId id = 0; id < program_.size(); ++id)
    for (NodeId arg : program_[id])
      goes_on[arg] = goes_on[arg] || (used_[id] && (program_[id].op == Op::Group || !(spreads[id] == spreads[arg])));
  for (NodeId id = 0; id < program_.size(); ++id) {
    const Op op = program_[id].op;
    const ColumnSpread spread = spreads[id];
    if (!used_[id] || !goes_on[id] || !spread.is_group() || op == Op::Group || op == Op::Operand || op == Op::Rotate ||
        is_condition(op))
      continue;
    const std::int64_t by = fixed_divisor(spread.by).value_or(0);
    const std::vector<NodeId> below = groups_below(program_, id);
    const bool alone = std::all_of(below.begin(), below.end(), [&](NodeId group) { return apart(group); });
    if (below.empty() || !alone || by < 2 || by >= config_.columns) continue;
    if (!spread.wraps && by <= config_.lanes && !is_stored_by_entry(id)) continue;
    Groups made{.node = id, .rematerialised = true, .made_before = stages_.sweeps.size()};
    made.column = {.present = true, .divide = spread.wraps ? 1 : by, .wrap = spread.wraps ? by : 0};
    made.wide = group_count(config_.columns, by, spread.wraps);
    groups_.push_back(made);
    kept_groups_[id] = true;
  }
}

bool RowLowering::is_stored_by_entry(NodeId id) const {
  for (std::size_t r = 0; r < program_.results.size(); ++r)
    if (program_.results[r].value == id && stored_by_entry(r)) return true;
  return false;
}

const RowLowering::Groups* RowLowering::value_of_groups(NodeId id) const {
  if (!config_.simd || id == at_hand_) return nullptr;
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Groups& each) { return each.node == id && each.made_before; });
  return found == groups_.end() ? nullptr : &*found;
}

// Those that some root of sweep `k` is made of, and no earlier one was.
void RowLowering::plan_values_of_groups(std::size_t k, const std::vector<NodeId>& roots, std::vector<NodeId>& of_row) {
  std::vector<bool> reached(program_.size());
  for (NodeId root : roots) reached[root] = true;
  for (NodeId id = static_cast<NodeId>(program_.size()); id-- > 0;)
    for (NodeId arg : program_[id]) reached[arg] = reached[arg] || reached[id];
  for (Groups& each : groups_) {
    if (!each.made_before || *each.made_before <= k || !reached[each.node]) continue;
    each.made_before = k;
    for (NodeId row_value : row_values_below(each.node)) of_row.push_back(row_value);
  }
}

void RowLowering::make_values_of_groups(std::size_t k) {
  for (const Groups& each : groups_) {
    if (each.made_before != k) continue;
    const std::int64_t wrap = each.column.wrap, lanes = config_.lanes;
    at_hand_ = each.node;
    sweep_at_hand_ = k;
    anywhere_ = true;
    Reg column = b_.copy(zero_), place = b_.copy(zero_);
    forget_places();
    b_.repeat_while_less(column, wrap ? b_.index(wrap) : columns_, [&] {
      Instr store = term_access(Do::Store, each.values_at, place, {});
      store.values =
          value_of_part(each.node, {.column = column, .aligned = 1, .back = back_from(column), .limit = columns_});
      b_.emit(std::move(store));
      b_.increase(column, wrap ? lanes : std::max(each.column.divide, lanes));
      b_.increase(place, lanes);
    });
    wrap ? repeat_first(each) : read_on(each, place);
    anywhere_ = false;
    at_hand_ = no_node;
  }
}

// [i, j / g] results of groups that registers cut anywhere: a group's value is made once more.
bool RowLowering::stored_by_entry(std::size_t r) const {
  if (!config_.simd || !is_of_groups(program_.results[r].spread)) return false;
  const AxisIndexing column = *fixed_axis(program_, program_.results[r].spread.column, config_.columns);
  return !column.wrap && !std::has_single_bit(static_cast<std::uint64_t>(column.divide));
}

void RowLowering::store_by_entries(std::size_t k) {
  for (std::size_t r : stages_.sweeps[k].stores) {
    if (!stored_by_entry(r)) continue;
    const Output& result = program_.results[r];
    const std::size_t array = program_.array_of_result(r);
    const AxisIndexing column = *fixed_axis(program_, result.spread.column, config_.columns);
    const auto steps = column_steps_.find(array);
    sweep_at_hand_ = k;
    anywhere_ = true;
    Reg entry = b_.copy(zero_), first = b_.copy(zero_);
    b_.repeat_while_less(first, columns_, [&] {
      const Leaf leaf{.column = first, .aligned = 1, .back = back_from(first), .limit = columns_};
      forget_places();
      const Reg value = value_of_part(result.value, leaf)[0];
      b_.emit({.code = Do::StoreOne,
               .type = *result.type,
               .a = row_pointer(array),
               .b = steps == column_steps_.end() ? entry : stepped(b_, steps->second, entry),
               .values = {value}});
      b_.increase(entry, 1);
      b_.increase(first, column.divide);
    });
    anywhere_ = false;
  }
}

}  // namespace trireme
