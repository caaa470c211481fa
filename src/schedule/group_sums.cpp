// Reductions inside groups of columns: those that share an entry of a result, [j / g], [j % c] and the like, and those
// of a value (group_values.cpp). Rule 4 over a group's columns, in order. A sweep leaves the row's terms in memory of
// its own, scratch or (long rows of thread machines) the workspace; after it the groups are reduced from there; a
// result's sums are added to those of other rows or stored.
#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "schedule/pair_sums.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {
namespace {

int power_above(std::int64_t value) { return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(value))); }

}  // namespace

std::int64_t RowLowering::Groups::most() const {
  std::int64_t most = 0;
  for (std::int64_t entry : {std::int64_t{0}, shares.boundary, wide - 1})
    most = std::max(most, shares.count(std::min(entry, wide - 1)));
  return most;
}

// Where terms lie, before all else in scratch; returns the bytes.
std::int64_t RowLowering::lay_out_groups() {
  const std::int64_t row = whole(config_.columns, line_values);
  std::int64_t at = 0, most = 0, wide = 0;
  for (const Stage& stage : stages_.sweeps)
    for (std::size_t r : stage.group_sums) {
      const AxisIndexing column = *fixed_axis(program_, program_.results[r].spread.column, config_.columns);
      Groups each{.result = r,
                  .op = row_reduction_of(program_[program_.results[r].value].op),
                  .column = column,
                  .shares = shares_of(column, config_.columns)};
      each.wide = column.extent(config_.columns);
      each.terms_at = at;
      at += row * value_bytes();
      most = std::max(most, each.most());
      wide = std::max(wide, each.wide);
      groups_.push_back(each);
    }
  for (const Stage& stage : stages_.sweeps)
    for (NodeId id : stage.groups) {
      if (wrapped(id) || (apart(id) && !config_.simd)) continue;
      Groups each = groups_of_node(id);
      each.rematerialised = apart(id);
      each.terms_at = at;
      each.values_at = each.rematerialised ? at : at + row * value_bytes();
      if (each.rematerialised) at += rematerialised_places(each) * value_bytes();
      else at += (row + (config_.simd ? whole(config_.columns + config_.lanes, line_values) : row)) * value_bytes();
      most = std::max(most, each.most());
      wide = std::max(wide, each.wide);
      groups_.push_back(each);
    }
  for (Groups& each : groups_) {
    if (!each.made_before) continue;
    each.values_at = at;
    at += rematerialised_places(each) * value_bytes();
  }
  if (!config_.simd) {
    group_team_bytes_ = at;
    std::int64_t scratch_bytes = wrapped_.bytes + apart_.bytes * config_.teams;
    for (const GroupsApart::Group& each : apart_.groups) scratch_bytes += each.wrapped.bytes;
    const bool in_scratch = at * config_.teams + scratch_bytes <= most_group_bytes;
    wrapped_at_ = in_scratch ? at * config_.teams : 0;
    apart_at_ = wrapped_at_ + scratch_bytes - apart_.bytes * config_.teams;
    if (!in_scratch) b_.kernel().launch.terms = static_cast<int>(at / (row * value_bytes()));
    return wrapped_at_ + scratch_bytes;
  }
  if (groups_.empty()) return 0;
  group_sums_at_ = at;
  at += whole(wide + config_.lanes, line_values) * value_bytes();
  group_spill_at_ = at;
  at += most_unrolled * config_.lanes * value_bytes();
  group_copy_at_ = at;
  return at + whole(most + config_.lanes, line_values) * value_bytes();
}

// A team's place for terms.
void RowLowering::place_terms() {
  if (groups_.empty() || config_.simd) return;
  if (!b_.kernel().launch.terms) {
    if (config_.teams > 1) terms_team_ = b_.mul(team_, group_team_bytes_);
    return;
  }
  Reg block = b_.special(Do::BlockIndex);
  if (config_.teams > 1) block = b_.add(b_.mul(block, config_.teams), team_);
  terms_ = b_.pointer(b_.pointer_to(terms_array), block, group_team_bytes_);
}

Instr RowLowering::term_access(Do code, std::int64_t at, Reg index, Reg mask) const {
  return {.code = code,
          .type = *program_.compute,
          .space = terms_ ? Space::Global : Space::Scratch,
          .a = terms_ ? terms_ : terms_team_,
          .b = index,
          .c = mask,
          .imm = at};
}

Reg RowLowering::load_term(std::int64_t at, Reg index, Reg mask) {
  Instr load = term_access(Do::Load, at, index, mask);
  Reg value = b_.fresh(Bank::Lane);
  load.values = {value};
  b_.emit(std::move(load));
  return mask ? b_.primitive(Op::Select, {mask, value, b_.number(identity_of(group_op_))}) : value;
}

void RowLowering::keep_terms(std::size_t k, const Leaf& leaf) {
  for (const Groups& each : groups_) {
    if (!finishes(k, each) || each.rematerialised) continue;
    Instr store = term_access(Do::Store, each.terms_at + leaf.offset * value_bytes(), leaf.column, leaf.mask);
    const NodeId reduction = each.node == no_node ? program_.results[each.result].value : each.node;
    store.values = chunk(program_[reduction].args[0], leaf);
    b_.emit(std::move(store));
  }
}

bool RowLowering::finishes(std::size_t k, const Groups& groups) const {
  const Stage& stage = stages_.sweeps[k];
  auto has = [](const auto& list, auto wanted) { return std::find(list.begin(), list.end(), wanted) != list.end(); };
  return groups.node == no_node ? has(stage.group_sums, groups.result) : has(stage.groups, groups.node);
}

void RowLowering::sum_groups(std::size_t k) {
  if (std::none_of(groups_.begin(), groups_.end(), [&](const Groups& each) { return finishes(k, each); })) return;
  b_.note("sums of groups");
  if (!config_.simd) b_.emit({.code = Do::Barrier});
  for (const Groups& each : groups_) {
    if (!finishes(k, each)) continue;
    group_op_ = each.op;
    if (!config_.simd) {
      groups_by_threads(each);
    } else if (each.rematerialised) {
      sum_rematerialised(k, each);
    } else {
      if (!each.column.wrap) contiguous_groups(each);
      else if (each.column.divide == 1) strided_groups(each);
      else groups_of_strided_runs(each);
      each.node == no_node ? finish_groups(each) : spread_groups(each);
    }
  }
  if (!config_.simd) b_.emit({.code = Do::Barrier});
  for (const Groups& each : groups_)
    if (each.entries && finishes(k, each)) row_values_[each.node] = load_term(each.values_at, zero_, state_.exists);
}

// Simd machines. A vector of the tree over `count` values (a power of two up to 256), `value(k)` the k-th, where `k` is
// a number and, if there are many, a register more.
Reg RowLowering::tree_through_scratch(int count, const std::function<std::optional<Reg>(Reg, int)>& value) {
  if (count <= most_unrolled)
    return tree_of(b_, group_op_, count, [&](int k) { return value(Reg{}, k); })
        .value_or(b_.number(identity_of(group_op_)));
  // Those that the upper levels bring together, then their sums.
  const int turns = turns_of_tree(count), vector_bytes = static_cast<int>(config_.lanes * value_bytes());
  Reg at = b_.copy(zero_), place = b_.copy(zero_);
  b_.repeat_while_less(at, b_.index(turns), [&] {
    const std::optional<Reg> sum = tree_of(b_, group_op_, most_unrolled, [&](int k) { return value(at, k * turns); });
    b_.emit({.code = Do::Store,
             .type = *program_.compute,
             .space = Space::Scratch,
             .a = place,
             .imm = group_spill_at_,
             .values = {sum ? *sum : b_.number(identity_of(group_op_))}});
    b_.increase(at, 1);
    b_.increase(place, vector_bytes);
  });
  return *tree_of(b_, group_op_, turns, [&](int k) -> std::optional<Reg> {
    return load_term(group_spill_at_ + static_cast<std::int64_t>(k) * vector_bytes, {}, {});
  });
}

// The sum of `count` values from index `begin` on, in all lanes; there are at most `most`.
Reg RowLowering::sum_contiguous(std::int64_t at, Reg begin, Reg count, std::int64_t most) {
  auto stripe = [&](Reg first, std::int64_t columns) {  // first: of the stripe, from `begin` on; none: 0
    const int chunks = power_above((columns + config_.lanes - 1) / config_.lanes);
    Reg sum = tree_through_scratch(chunks, [&](Reg more, int c) -> std::optional<Reg> {
      Reg offset = first;
      if (more) offset = first ? b_.add(first, b_.mul(more, config_.lanes)) : b_.mul(more, config_.lanes);
      const std::int64_t fixed = static_cast<std::int64_t>(c) * config_.lanes;
      if (fixed >= columns) return std::nullopt;
      const Reg mask = b_.below(offset ? offset : zero_, fixed, count);
      return load_term(at + fixed * value_bytes(), offset ? b_.add(begin, offset) : begin, mask);
    });
    for (int s = std::min(config_.lanes, power_above(columns)) / 2; s >= 1; s /= 2)
      sum = combine(group_op_, sum, b_.shuffle_xor(sum, s));
    return sum;
  };
  if (most <= contract::stripe) return stripe({}, most);
  const Reg stripes = b_.index(Do::IndexShiftRight, b_.add(count, contract::stripe - 1),
                               std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  const int levels = std::bit_width(static_cast<std::uint64_t>(contract::stripes(most)));
  return PairSums(b_, zero_, levels, group_op_).sum_one_by_one(zero_, stripes, [&](Reg which) {
    return stripe(b_.mul(which, contract::stripe), contract::stripe);
  });
}

void RowLowering::put_group_sum(Reg entry, Reg sum) {
  b_.emit({.code = Do::StoreOne,
           .type = *program_.compute,
           .space = Space::Scratch,
           .b = entry,
           .imm = group_sums_at_,
           .values = {sum}});
}

// [j / g]: neighbours.
void RowLowering::contiguous_groups(const Groups& groups) {
  const std::int64_t run = groups.column.divide;
  Reg entry = b_.copy(zero_), begin = b_.copy(zero_), end = b_.index(groups.wide);
  if (run > 1 && run <= config_.lanes && std::has_single_bit(static_cast<std::uint64_t>(run)) && !groups.entries) {
    // Groups of a vector at once; their sums then stand in the first lane of each.
    Reg columns = b_.index(config_.columns);
    b_.repeat_while_less(begin, columns, [&] {
      Reg sum = load_term(groups.terms_at, begin, b_.below(begin, 0, columns));
      for (int s = static_cast<int>(run) / 2; s >= 1; s /= 2) sum = combine(group_op_, sum, b_.shuffle_xor(sum, s));
      Instr store = term_access(Do::Store, group_spill_at_, {}, {});
      store.values = {sum};
      b_.emit(std::move(store));
      for (std::int64_t lane = 0; lane < config_.lanes; lane += run) {
        const std::int64_t at = group_spill_at_ + lane * value_bytes();
        Reg one = b_.load_one_scratch(*program_.compute, at);
        put_group_sum(b_.add(entry, lane / run), one);
      }
      b_.increase(begin, config_.lanes);
      b_.increase(entry, config_.lanes / run);
    });
    return;
  }
  b_.repeat_while_less(entry, end, [&] {
    const Reg left = b_.index(Do::IndexSub, b_.index(config_.columns), begin);
    put_group_sum(entry, sum_contiguous(groups.terms_at, begin, b_.index(Do::IndexMin, left, run), groups.most()));
    b_.increase(entry, 1);
    b_.increase(begin, run);
  });
}

// [j % c]: the lanes of a vector are neighbouring entries.
void RowLowering::strided_groups(const Groups& groups) {
  const std::int64_t wrap = groups.column.wrap, most = groups.most(), full = config_.columns / wrap;
  Reg entry = b_.copy(zero_), columns = b_.index(config_.columns);
  auto stripe = [&](Reg first, std::int64_t count) {  // first: index of the stripe's first column
    return tree_through_scratch(power_above(count), [&](Reg more, int k) -> std::optional<Reg> {
      if (!first && !more && k >= most) return std::nullopt;
      Reg index = first ? b_.add(entry, first) : entry;
      if (more) index = b_.add(index, b_.mul(more, wrap));
      const bool all = !first && !more && k < full && whole(groups.wide, config_.lanes) + k * wrap <= config_.columns;
      return load_term(groups.terms_at + k * wrap * value_bytes(), index,
                       all ? Reg{} : b_.below(index, k * wrap, columns));
    });
  };
  b_.repeat_while_less(entry, b_.index(groups.wide), [&] {
    Reg sum;
    if (most <= contract::stripe) {
      sum = stripe({}, std::max<std::int64_t>(most, 1));
    } else {
      const int levels = std::bit_width(static_cast<std::uint64_t>(contract::stripes(most)));
      sum = PairSums(b_, zero_, levels, group_op_)
                .sum_one_by_one(zero_, b_.index(contract::stripes(most)), [&](Reg which) {
                  return stripe(b_.mul(which, contract::stripe * wrap), contract::stripe);
                });
    }
    Instr store = term_access(Do::Store, group_sums_at_, entry, {});
    store.values = {sum};
    b_.emit(std::move(store));
    b_.increase(entry, config_.lanes);
  });
}

// [(j / a) % b]: a group's runs are copied together.
void RowLowering::groups_of_strided_runs(const Groups& groups) {
  const std::int64_t run = groups.shares.run, period = groups.shares.period;
  const Reg columns = b_.index(config_.columns), end = b_.index(groups.wide);
  Reg entry = b_.copy(zero_);
  b_.repeat_while_less(entry, end, [&] {
    Reg begin = b_.copy(b_.mul(entry, run)), to = b_.copy(zero_), count = b_.copy(zero_);
    b_.repeat_while_less(begin, columns, [&] {
      const Reg run_columns = b_.index(Do::IndexMin, b_.index(Do::IndexSub, columns, begin), run);
      Reg at = b_.copy(begin), place = b_.copy(to), run_end = b_.add(begin, run_columns);
      b_.repeat_while_less(at, run_end, [&] {
        Instr store = term_access(Do::Store, group_copy_at_, place, {});
        store.values = {load_term(groups.terms_at, at, b_.below(at, 0, run_end))};
        b_.emit(std::move(store));
        b_.increase(at, config_.lanes);
        b_.increase(place, config_.lanes);
      });
      b_.emit({.code = Do::IndexAdd, .dst = count, .a = count, .b = run_columns});
      b_.increase(to, run);
      b_.increase(begin, period);
    });
    put_group_sum(entry, sum_contiguous(group_copy_at_, zero_, count, std::max<std::int64_t>(groups.most(), 1)));
    b_.increase(entry, 1);
  });
}

// Of entries that have no columns, which are the last: what a reduction of nothing is, +0.0 for sums.
void RowLowering::finish_groups(const Groups& groups) {
  const Output& result = program_.results[groups.result];
  const std::int64_t some = groups.shares.counts[2] > 0   ? groups.wide
                            : groups.shares.counts[1] > 0 ? groups.shares.boundary + 1
                                                          : groups.shares.boundary;
  Reg entry = b_.copy(zero_), wide = b_.index(groups.wide), filled = b_.index(std::min(some, groups.wide));
  const auto found = sums_of_result(groups.result);
  const auto sums = found.first;
  const auto q = found.second;
  const std::size_t array = program_.array_of_result(groups.result);
  if (!sums && layout_.array(array).strided) {
    const ColumnSteps& steps = column_steps_.at(array);
    b_.repeat_while_less(entry, wide, [&] {
      Reg value = b_.fresh(Bank::Lane);
      b_.assign(value, b_.number(empty_of(groups.op)));
      b_.when_less(entry, filled, [&] {
        Instr load = term_access(Do::LoadOne, group_sums_at_, entry, {});
        load.dst = value;
        b_.emit(std::move(load));
      });
      b_.emit({.code = Do::StoreOne,
               .type = *result.type,
               .a = row_pointer(array),
               .b = stepped(b_, steps, entry),
               .values = {value}});
      b_.increase(entry, 1);
    });
    return;
  }
  b_.repeat_while_less(entry, wide, [&] {
    const Reg mask = b_.below(entry, 0, wide);
    Reg value = b_.fresh(Bank::Lane);
    Instr load = term_access(Do::Load, group_sums_at_, entry, mask);
    load.values = {value};
    b_.emit(std::move(load));
    if (some < groups.wide)
      value = b_.primitive(Op::Select, {b_.below(entry, 0, filled), value, b_.number(empty_of(groups.op))});
    Instr store{.code = Do::Store, .type = *result.type, .b = entry, .c = mask};
    if (sums) {
      store.type = *program_.compute;
      store.a = sums->partial_rows[q];
      Reg before = b_.fresh(Bank::Lane);
      b_.emit({.code = Do::Load, .type = store.type, .a = store.a, .b = entry, .c = mask, .values = {before}});
      value = combine(groups.op, before, value);
    } else {
      store.a = row_pointer(array);
    }
    store.values = {value};
    b_.emit(std::move(store));
    b_.increase(entry, config_.lanes);
  });
}

// Thread machines: a thread an entry where groups are small, else a group of lanes.
void RowLowering::groups_by_threads(const Groups& groups) {
  const std::int64_t most = groups.most(), run = groups.column.divide, wrap = groups.column.wrap;
  const bool by_thread = most <= most_unrolled;
  auto of_row = [&](std::int64_t count) {  // none where the row does not exist
    const Reg all = b_.index(count);
    return state_.exists ? b_.index(Do::IndexMin, all, b_.index(Do::IndexMul, state_.left, all)) : all;
  };
  const Reg limit = of_row(groups.wide), columns = of_row(config_.columns);
  const int step = by_thread ? config_.lanes * config_.groups : config_.groups;
  Reg base = b_.copy(zero_);
  b_.repeat_while_less(base, b_.index(groups.wide), [&] {
    const Reg entry = b_.add(base, by_thread ? row_owner_ : group_);
    const Reg first = b_.mul(entry, wrap && run == 1 ? 1 : run);
    const Reg end = wrap ? columns : b_.index(Do::IndexMin, columns, b_.add(first, run));
    auto term = [&](Reg index, std::int64_t offset) {
      const std::int64_t at = groups.terms_at + offset * value_bytes();
      return load_term(at, index, b_.below(index, offset, end));
    };
    auto of_k = [&](Reg k) {  // where the k-th column of the entry lies
      if (!wrap) return b_.add(first, k);
      if (run == 1) return b_.add(first, b_.mul(k, wrap));
      const Reg runs = b_.index(Do::IndexDivide, k, run);
      const Reg jumped = b_.mul(runs, run * wrap - run);
      return b_.add(b_.add(first, k), jumped);
    };
    Reg sum, mask;
    if (by_thread) {
      sum = tree_of(b_, group_op_, power_above(std::max<std::int64_t>(most, 1)), [&](int k) -> std::optional<Reg> {
              if (k >= most) return std::nullopt;
              return term(first, wrap ? k / run * run * wrap + k % run : k);
            }).value_or(b_.number(identity_of(group_op_)));
      mask = b_.below(entry, 0, limit);
    } else {
      auto stripe = [&](Reg begin, std::int64_t count) {
        const int chunks = power_above((count + config_.lanes - 1) / config_.lanes);
        const Reg from = begin ? b_.add(begin, lane_) : lane_;
        Reg all = *tree_of(b_, group_op_, chunks, [&](int c) -> std::optional<Reg> {
          if (std::int64_t{c} * config_.lanes >= count) return std::nullopt;
          return term(of_k(b_.add(from, std::int64_t{c} * config_.lanes)), 0);
        });
        for (int s = config_.lanes / 2; s >= 1; s /= 2) all = combine(group_op_, all, b_.shuffle_xor(all, s));
        return all;
      };
      if (most <= contract::stripe) {
        sum = stripe({}, most);
      } else {
        const std::int64_t stripes = contract::stripes(most);
        const int levels = std::bit_width(static_cast<std::uint64_t>(stripes));
        sum = PairSums(b_, zero_, levels, group_op_).sum_one_by_one(zero_, b_.index(stripes), [&](Reg which) {
          return stripe(b_.mul(which, contract::stripe), contract::stripe);
        });
      }
      mask = b_.below(b_.add(entry, b_.mul(lane_, groups.wide)), 0, limit);  // lane 0
    }
    // Entries without columns: those whose first column does not exist.
    if (groups.node == no_node)
      sum = b_.primitive(Op::Select, {b_.below(first, 0, columns), sum, b_.number(empty_of(groups.op))});
    finish_by_threads(groups, entry, sum, mask);
    b_.increase(base, step);
  });
}

void RowLowering::finish_by_threads(const Groups& groups, Reg entry, Reg sum, Reg mask) {
  if (groups.node != no_node) {
    Instr store = term_access(Do::StoreOne, groups.values_at, entry, mask);
    store.values = {sum};
    return b_.emit(std::move(store));
  }
  const Output& result = program_.results[groups.result];
  const std::size_t array = program_.array_of_result(groups.result);
  Instr store{.code = Do::StoreOne, .type = *result.type, .b = entry, .c = mask};
  if (auto [sums, q] = sums_of_result(groups.result); sums) {
    store.type = *program_.compute;
    store.a = sums->partial_rows[q];
    Reg before = b_.fresh(Bank::Lane);
    b_.emit({.code = Do::Load, .type = store.type, .a = store.a, .b = entry, .c = mask, .values = {before}});
    sum = combine(groups.op, before, sum);
  } else {
    store.a = row_pointer(array);
    auto steps = column_steps_.find(array);
    if (steps != column_steps_.end()) store.b = stepped(b_, steps->second, entry);
  }
  store.values = {sum};
  b_.emit(std::move(store));
}

}  // namespace trireme
