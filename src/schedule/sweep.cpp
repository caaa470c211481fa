// One sweep over a row: all chunks of columns visited once, the sweep's reductions finished.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "schedule/picked_rows.hpp"

namespace trireme {
// In loops, where a stripe's vectors for a reduction lie in scratch.
std::int64_t RowLowering::spilled_at(std::size_t reduction) const {
  return spill_at_ + static_cast<std::int64_t>(reduction) * chunks() * config_.lanes * value_bytes();
}

void RowLowering::spill(std::size_t reduction, Reg place, Values values, std::int64_t chunk) {
  b_.emit({.code = Do::Store,
           .type = *program_.compute,
           .space = Space::Scratch,
           .a = place,
           .imm = spilled_at(reduction) + chunk * config_.lanes * value_bytes(),
           .values = std::move(values)});
}

// Adds them: upper half to lower half, until one is left.
Reg RowLowering::sum_of_spilled(std::size_t reduction, Op op, int count) {
  if (config_.compact) return halved_in_scratch(spilled_at(reduction), op, count);
  auto load = [&](int c) {
    Reg value = b_.fresh(Bank::Lane);
    b_.emit({.code = Do::Load,
             .type = *program_.compute,
             .space = Space::Scratch,
             .imm = spilled_at(reduction) + c * config_.lanes * value_bytes(),
             .values = {value}});
    return value;
  };
  auto tree = [&](auto&& self, int base, int step) -> Reg {
    if (step == count) return load(base);
    Reg low = self(self, base, step * 2);
    return combine(op, low, self(self, base + step, step * 2));
  };
  return tree(tree, 0, 1);
}

// The same in loops, `count` vectors where they lie.
Reg RowLowering::halved_in_scratch(std::int64_t at, Op op, int count) {
  const Type type = *program_.compute;
  const std::int64_t vector_bytes = config_.lanes * value_bytes();
  Reg half = b_.copy(b_.index(count / 2 * vector_bytes)), less_than_one = b_.index(vector_bytes - 1);
  b_.repeat_while_less(less_than_one, half, [&] {
    Reg low = b_.copy(zero_);
    b_.repeat_while_less(low, half, [&] {
      Reg sum = b_.load_scratch(type, at, low);
      sum = combine(op, sum, b_.load_scratch(type, at, b_.index(Do::IndexAdd, low, half)));
      b_.store_scratch(type, at, sum, low);
      b_.increase(low, vector_bytes);
    });
    b_.emit({.code = Do::IndexShiftRight, .dst = half, .a = half, .imm = 1});
  });
  return b_.load_scratch(type, at);
}

void RowLowering::sweep(std::size_t k) {
  b_.note(fmt::format("sweep {}", k));
  evaluate_row(work_[k].row);
  make_row_integers(work_[k].chunk);
  make_values_of_groups(k);
  if (sweeps_for_nothing(k)) return;
  if (config_.stripes) {
    sweep_unrolled(k);
  } else {
    sweep_in_loops(k);
  }
}

void RowLowering::sweep_unrolled(std::size_t k) {
  const Stage& stage = stages_.sweeps[k];
  std::size_t reductions = stage.reductions.size();
  std::vector<std::vector<std::optional<Values>>> stripes(reductions);
  std::vector<std::vector<Pair>> pairs(stage.folds.size());
  auto add_up = [&](Pass pass, int stripe, auto&& visit_leaf) {
    Trees trees(*this, ops_of(k, pass), chunks());
    for (int step = 0; step < chunks(); ++step) {
      Leaf leaf = unrolled_leaf(stripe, trees.place(step), state_);
      leaf.paired = trees.in_order();
      if (leaf.id >= 0) visit_leaf(leaf);
      for (std::size_t r = 0; r < trees.count(); ++r) {
        std::optional<Values> sum;
        if (leaf.id >= 0) sum = addend(k, pass, r, leaf);
        trees.join(r, step, std::move(sum));
      }
    }
    return trees;
  };
  auto forget = [&](const Leaf& leaf) {
    row_leaves_[leaf.id].keep([&](NodeId id) {
      return spans_chunks(id) || in_chunks_of_row(id) ||
             std::any_of(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.id == id; });
    });
  };
  // Stripes whose totals cross the lanes together, so that one's shuffles fill the time of another's; with values
  // loaded again, no more than registers hold of them.
  const int together = stage.folds.empty() ? 1 : config_.reload ? std::min(config_.stripes, 4) : config_.stripes;
  for (int first = 0; first < config_.stripes; first += together) {
    std::vector<std::vector<Values>> elements(stage.folds.size()), terms(stage.folds.size());
    std::vector<int> present;
    for (int stripe = first; stripe < first + together; ++stripe) {
      Trees trees = add_up(Pass::Elements, stripe, [&](const Leaf& leaf) {
        if (config_.reload && k > 0) forget(leaf);
        visit(k, leaf);
      });
      finish_stores();
      for (std::size_t r = 0; r < reductions; ++r) stripes[r].push_back(trees.sum(r));
      if (stage.folds.empty() || stripe * config_.stripe() >= config_.columns) continue;  // no group has these columns
      present.push_back(stripe);
      for (std::size_t f = 0; f < stage.folds.size(); ++f) elements[f].push_back(*trees.sum(reductions + f));
    }
    std::vector<std::vector<Reg>> firsts;
    for (std::size_t f = 0; f < stage.folds.size(); ++f)
      firsts.push_back(across_lanes_apart(folds()[stage.folds[f].fold].first, std::move(elements[f])));
    for (std::size_t s = 0; s < present.size(); ++s) {
      begin_terms(k, present[s], firsts, s);
      Trees trees = add_up(Pass::Terms, present[s], [&](const Leaf& leaf) { evaluate_elements(k, leaf); });
      for (std::size_t f = 0; f < stage.folds.size(); ++f) terms[f].push_back(*trees.sum(f));
    }
    for (std::size_t f = 0; f < stage.folds.size(); ++f) {
      std::vector<Reg> seconds = across_lanes_apart(Op::Sum, std::move(terms[f]));
      for (std::size_t s = 0; s < present.size(); ++s) pairs[f].push_back({firsts[f][s], seconds[s]});
    }
  }
  sum_wrapped(k);
  if (!stage.reduces()) return;
  std::vector<Reg> totals;
  for (std::size_t r = 0; r < reductions; ++r)
    totals.push_back(across_lanes(program_[stage.reductions[r]].op, std::move(stripes[r])));
  std::vector<Pair> folded;
  for (std::size_t f = 0; f < stage.folds.size(); ++f)
    folded.push_back(across_unrolled(stage.folds[f].fold, std::move(pairs[f])));
  if (config_.groups * config_.cluster > 1) {
    if (config_.cluster > 1 && one_row_a_team() && !std::exchange(met_, true)) b_.emit({.code = Do::ClusterBarrier});
    for (std::size_t r = 0; r < reductions; ++r) publish(k, r, totals[r]);
    for (std::size_t f = 0; f < folded.size(); ++f)
      for (std::size_t c : {0, 1}) publish(k, totals_of_fold(stage, f)[c], folded[f][c]);
    meet(k);
    for (std::size_t r = 0; r < reductions; ++r) totals[r] = across_groups(k, r, program_[stage.reductions[r]].op);
    for (std::size_t f = 0; f < folded.size(); ++f) folded[f] = across_groups(k, f);
  }
  for (std::size_t r = 0; r < reductions; ++r)
    row_values_[stage.reductions[r]] = names_.say(b_, stage.reductions[r], totals[r]);
  for (std::size_t f = 0; f < folded.size(); ++f) finish_totals(stage.folds[f], folded[f]);
}

void RowLowering::sweep_in_loops(std::size_t k) {
  const Stage& stage = stages_.sweeps[k];
  if (config_.compact) {  // all stripes as the last one, and where nothing is summed the row as one stripe
    Reg column = b_.copy(zero_);
    if (!stage.reduces()) {
      last_stripe(k, column, columns_);
    } else {
      b_.repeat_while_less(column, columns_, [&] {
        last_stripe(k, column, b_.index(Do::IndexMin, b_.index(Do::IndexSub, columns_, column), contract::stripe));
        b_.increase(column, contract::stripe);
      });
    }
  } else if (config_.simd) {
    Reg column = b_.copy(zero_);
    Reg full = b_.index(Do::IndexSub, columns_, b_.index(Do::IndexAnd, columns_, contract::stripe - 1));
    b_.repeat_while_less(column, full, [&] {
      stripe_in_full(k, column);
      b_.increase(column, config_.stripe());
    });
    b_.when_less(column, columns_, [&] { last_stripe(k, column, b_.index(Do::IndexSub, columns_, column)); });
  } else {
    Reg base = b_.copy(zero_);
    b_.repeat_while_less(base, stripes_, [&] {
      Reg stripe = b_.add(base, group_);
      Reg column = b_.add(b_.mul(stripe, config_.stripe()), thread_column_);
      auto add_up = [&](Pass pass, auto&& visit_leaf) {
        const std::vector<Op> ops = ops_of(k, pass);
        std::vector<std::vector<std::optional<Values>>> parts(ops.size());
        group_values_.clear();
        for (int c = 0; c < chunks() && c * chunk_columns() < config_.stripe(); ++c) {
          Leaf leaf{.column = column, .offset = c * chunk_columns(), .limit = columns_};
          leaf.mask = mask_of(leaf);
          loop_values_.clear();
          visit_leaf(leaf);
          for (std::size_t r = 0; r < parts.size(); ++r) parts[r].push_back(addend(k, pass, r, leaf));
        }
        std::vector<Reg> totals;
        for (std::size_t r = 0; r < parts.size(); ++r) {
          for (std::size_t half = parts[r].size() / 2; half >= 1; half /= 2)
            for (std::size_t c = 0; c < half; ++c) parts[r][c] = fold(ops[r], parts[r][c], parts[r][c + half]);
          totals.push_back(across_lanes(ops[r], {parts[r][0]}));
          store_stripe(first_of(stage, pass) + r, totals.back(), stripe);
        }
        return totals;
      };
      std::vector<Reg> totals = add_up(Pass::Elements, [&](const Leaf& leaf) { visit(k, leaf); });
      if (!stage.folds.empty()) {
        Reg left = b_.index(Do::IndexSub, columns_, b_.mul(stripe, contract::stripe));
        Reg columns = b_.index(Do::IndexMin, left, contract::stripe);
        totals.erase(totals.begin(), totals.begin() + static_cast<std::ptrdiff_t>(stage.reductions.size()));
        begin_terms(k, totals, {}, b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = columns}));
        add_up(Pass::Terms, [&](const Leaf& leaf) { evaluate_elements(k, leaf); });
      }
      b_.increase(base, config_.groups);
    });
    if (stage.reduces()) b_.emit({.code = Do::Barrier});
  }
  for (std::size_t r = 0; r < stage.reductions.size(); ++r)
    row_values_[stage.reductions[r]] =
        names_.say(b_, stage.reductions[r], across_stripes(r, program_[stage.reductions[r]].op));
  for (std::size_t f = 0; f < stage.folds.size(); ++f) finish_totals(stage.folds[f], across_stripes(k, f));
  // The next sweep's totals take the same place in scratch.
  if (!config_.simd && stage.reduces()) b_.emit({.code = Do::Barrier});
}

// A stripe's totals; `sum` gives one as a vector. Returns the first totals of its folds.
template <typename Sum>
std::vector<Reg> RowLowering::store_totals(std::size_t k, Pass pass, Reg stripe, Sum&& sum) {
  const Stage& stage = stages_.sweeps[k];
  const std::vector<Op> ops = ops_of(k, pass);
  std::vector<Reg> firsts;
  for (std::size_t r = 0; r < ops.size(); ++r) {
    Reg total = across_lanes(ops[r], {Values{sum(r)}});
    store_stripe(first_of(stage, pass) + r, total, stripe);
    if (r >= stage.reductions.size()) firsts.push_back(total);
  }
  return firsts;
}

// A stripe of 256 existing columns: `unroll` chunks an iteration, those that the tree's upper levels bring together;
// their sums go through scratch if there is more than one iteration.
void RowLowering::stripe_in_full(std::size_t k, Reg column) {
  const Stage& stage = stages_.sweeps[k];
  const bool reduces = stage.reduces();
  int total = chunks(), unroll = this->unroll(), turns = total / unroll;
  std::int64_t width = config_.lanes * config_.vector, vector_bytes = config_.lanes * value_bytes();
  Reg stripe;
  auto add_up = [&](Pass pass, auto&& visit_leaf) {
    const std::vector<Op> ops = ops_of(k, pass);
    std::vector<Reg> sums(ops.size());
    auto turn = [&](Reg at) {  // chunks at, at + turns, at + 2 turns, ...; one after the other if nothing is summed
      Trees trees(*this, ops, unroll);
      Reg back = back_from(at);
      group_values_.clear();
      forget_places();
      for (int step = 0; step < unroll; ++step) {
        Leaf leaf{.column = at,
                  .offset = trees.place(step) * (reduces ? turns : 1) * width,
                  .paired = trees.in_order(),
                  .aligned = turns == 1 ? config_.stripe() : (reduces ? 1 : unroll) * width,
                  .back = back};
        loop_values_.clear();
        visit_leaf(leaf);
        for (std::size_t r = 0; r < sums.size(); ++r) trees.join(r, step, addend(k, pass, r, leaf));
      }
      finish_stores();
      for (std::size_t r = 0; r < sums.size(); ++r) sums[r] = trees.sum(r)->front();
    };
    if (turns == 1) {
      turn(column);
    } else {
      Reg at = b_.copy(column), end = b_.add(column, reduces ? turns * width : contract::stripe);
      Reg place = b_.copy(zero_);
      b_.repeat_while_less(at, end, [&] {
        turn(at);
        for (std::size_t r = 0; r < sums.size(); ++r) spill(first_of(stage, pass) + r, place, {sums[r]});
        b_.increase(at, reduces ? width : unroll * width);
        b_.increase(place, vector_bytes);
      });
      for (std::size_t r = 0; r < sums.size(); ++r) sums[r] = sum_of_spilled(first_of(stage, pass) + r, ops[r], turns);
    }
    if (pass == Pass::Elements)
      stripe = b_.index(Do::IndexShiftRight, column, std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
    return store_totals(k, pass, stripe, [&](std::size_t r) { return sums[r]; });
  };
  const std::vector<Reg> firsts = add_up(Pass::Elements, [&](const Leaf& leaf) { visit(k, leaf); });
  if (stage.folds.empty()) return;
  begin_terms(k, firsts, contract::stripe, {});
  add_up(Pass::Terms, [&](const Leaf& leaf) { evaluate_elements(k, leaf); });
}

// The row's last, shorter stripe: full chunks in a loop, one partial chunk, identities for the rest; all through
// scratch, so that the sweep's code stands here only twice. Chunks of a group go together.
void RowLowering::last_stripe(std::size_t k, Reg column, Reg remaining) {
  const Stage& stage = stages_.sweeps[k];
  int total = chunks();
  std::int64_t width = config_.lanes * config_.vector, vector_bytes = config_.lanes * value_bytes();
  std::int64_t together = width;
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && program_[id].op == Op::Group) together = std::max(together, group_width_[id]);
  Reg stripe;
  auto add_up = [&](Pass pass, auto&& visit_leaf) -> std::vector<Reg> {
    const std::vector<Op> ops = ops_of(k, pass);
    const std::size_t first = first_of(stage, pass);
    Reg at = b_.copy(column), place = b_.copy(zero_);
    auto leaves_below = [&](Reg limit) {
      const Reg back = back_from(at);
      group_values_.clear();
      forget_places();
      for (std::int64_t c = 0; c * width < together; ++c) {
        Leaf leaf{.column = at, .offset = c * width, .aligned = together, .back = back, .limit = limit};
        if (limit) leaf.mask = mask_of(leaf);
        loop_values_.clear();
        visit_leaf(leaf);
        for (std::size_t r = 0; r < ops.size(); ++r) spill(first + r, place, addend(k, pass, r, leaf), c);
      }
      b_.increase(at, together);
      b_.increase(place, together / width * vector_bytes);
    };
    auto partial = [&] { leaves_below(columns_); };
    if (config_.compact) {
      b_.repeat_while_less(at, b_.add(column, remaining), [&] { leaves_below(together > 1 ? columns_ : Reg{}); });
    } else if (seldom_) {
      b_.repeat_while_less(at, columns_, partial);
    } else {
      Reg full_end = b_.index(Do::IndexSub, columns_, b_.index(Do::IndexAnd, remaining, together - 1));
      b_.repeat_while_less(at, full_end, [&] { leaves_below({}); });
      if (!config_.columns || config_.columns % together) b_.when_less(at, columns_, partial);
    }
    if (ops.empty()) return {};
    Reg end = b_.index(total * vector_bytes);
    b_.repeat_while_less(place, end, [&] {
      for (std::size_t r = 0; r < ops.size(); ++r) spill(first + r, place, {b_.number(identity_of(ops[r]))});
      b_.increase(place, vector_bytes);
    });
    if (pass == Pass::Elements)
      stripe = b_.index(Do::IndexShiftRight, column, std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
    return store_totals(k, pass, stripe, [&](std::size_t r) { return sum_of_spilled(first + r, ops[r], total); });
  };
  const std::vector<Reg> firsts = add_up(Pass::Elements, [&](const Leaf& leaf) { visit(k, leaf); });
  if (stage.folds.empty()) return;
  begin_terms(k, firsts, {}, b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = remaining}));
  add_up(Pass::Terms, [&](const Leaf& leaf) { evaluate_elements(k, leaf); });
}

// On simd machines a store past the caches wants the rest of its line to follow at once: where sums give the order of
// chunks, only chunks of whole lines do, or of halves that are stored together.
bool RowLowering::streams(std::size_t k, Type type) const {
  if (!config_.streaming || !config_.simd) return config_.streaming;
  const bool halves = stores_two(type) && 2 * config_.lanes * static_cast<int>(bytes(type)) == line_bytes;
  const bool together = halves && (config_.stripes || unroll() >= chunks());
  return !stages_.sweeps[k].reduces() || together || config_.lanes * bytes(type) >= line_bytes;
}

// Two chunks of elements half as wide as the compute type's fill a register: one narrowing, one store.
bool RowLowering::stores_two(Type type) const {
  return config_.simd && config_.lanes > 1 && 2 * bytes(type) == bytes(*program_.compute);
}

void RowLowering::store(Instr instr, const Leaf& leaf) {
  if (!leaf.paired || instr.c || !stores_two(instr.type)) return b_.emit(std::move(instr));
  const std::int64_t chunk_bytes = config_.lanes * static_cast<std::int64_t>(bytes(instr.type));
  const std::int64_t next = instr.backwards ? -chunk_bytes : chunk_bytes;
  auto half = std::find_if(half_stores_.begin(), half_stores_.end(), [&](const Instr& each) {
    return each.a == instr.a && each.b == instr.b && each.imm + next == instr.imm;
  });
  if (half == half_stores_.end()) return half_stores_.push_back(std::move(instr));
  half->values.push_back(instr.values[0]);
  b_.emit(std::move(*half));
  half_stores_.erase(half);
}

void RowLowering::finish_stores() {
  for (Instr& each : half_stores_) b_.emit(std::move(each));
  half_stores_.clear();
}

// Each sweep asks for its share of the next row's lines, so that memory is idle in none; where rows overlap, the sweep
// that also stores.
void RowLowering::prefetch_next(std::size_t k, const Leaf& leaf) {
  auto sweeps_before = [&](std::size_t end) {
    std::int64_t count = 0;
    for (std::size_t sweep = 0; sweep < end; ++sweep) count += !sweeps_for_nothing(sweep);
    return count;
  };
  const std::int64_t turn = sweeps_before(k), turns = sweeps_before(stages_.sweeps.size());
  for (const auto& [operand, pointer] : next_rows_) {
    Type type = *program_.operands[operand].type;
    std::int64_t at = leaf.offset * static_cast<std::int64_t>(bytes(type));
    if (at % line_bytes) continue;
    if (overlap_ ? !trailing_ || k + 2 != stages_.sweeps.size() : at / line_bytes % turns != turn) continue;
    Instr prefetch = element_access(Do::Prefetch, type, layout_.array(operand), leaf);
    prefetch.a = pointer;
    b_.emit(std::move(prefetch));
  }
}

void RowLowering::visit(std::size_t k, const Leaf& leaf) {
  if (config_.prefetch) prefetch_next(k, leaf);
  if (trailing_ && k + 2 == stages_.sweeps.size()) return visit_both(leaf);
  evaluate(k, leaf);
  finish(k, leaf);
}

void RowLowering::evaluate(std::size_t k, const Leaf& leaf) {
  sweep_at_hand_ = k;
  load_kept(k, work_[k].chunk, leaf);
  evaluate_chunk(work_[k].chunk, leaf);
}

// What an earlier sweep has kept of these nodes; unrolled, they stay in registers.
void RowLowering::load_kept(std::size_t k, const std::vector<NodeId>& nodes, const Leaf& leaf) {
  for (const Kept& each : kept_) {
    if (config_.stripes || each.sweep >= k || !std::binary_search(nodes.begin(), nodes.end(), each.id)) continue;
    Instr load = kept_access(Do::Load, each.id, leaf);
    loop_values_.put(each.id, load.values = fresh_values());
    b_.emit(std::move(load));
  }
}

void RowLowering::finish(std::size_t k, const Leaf& leaf) {
  for (const Kept& each : kept_) {
    if (config_.stripes || each.sweep != k) continue;
    Instr store = kept_access(Do::Store, each.id, leaf);
    store.values = chunk(each.id, leaf);
    b_.emit(std::move(store));
  }
  const Stage& stage = stages_.sweeps[k];
  for (std::size_t r : stage.stores) {
    const Output& result = program_.results[r];
    const std::size_t array = program_.array_of_result(r);
    if (is_of_groups(result.spread)) {
      if (!stored_by_entry(r)) store_groups(r, leaf);
      continue;
    }
    const bool picked = result.spread.row.picked();
    if (auto it = column_steps_.find(array); it != column_steps_.end()) {
      auto store_all = [&](Reg inside) {
        Leaf here = leaf;
        here.mask = both(leaf.mask, inside);
        store_mapped(*result.type, row_pointer(array), {.axis = result.spread.column, .steps = &it->second}, here,
                     chunk(result.value, leaf));
      };
      picked ? store_picked(array, store_all) : store_all({});
      continue;
    }
    Instr instr = element_access(Do::Store, *result.type, layout_.array(array), leaf);
    instr.hint = streams(k, *result.type) ? Hint::Streaming : Hint::None;
    instr.a = row_pointer(array);
    if (leaf.id >= 0 && points_at_column(array)) instr.b = {};
    instr.c = leaf.mask;
    instr.values = chunk(result.value, leaf);
    if (picked) {
      store_picked(array, [&](Reg inside) {
        instr.c = both(instr.c, inside);
        b_.emit(std::move(instr));
      });
      continue;
    }
    store(std::move(instr), leaf);
  }
  for (std::size_t r : stage.columns) add_to_columns(r, leaf);
  keep_terms(k, leaf);
  keep_wrapped(k, leaf);
}

}  // namespace trireme
