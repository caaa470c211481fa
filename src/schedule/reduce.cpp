// Reductions along a row, in the contract's order: a halving tree inside each stripe of 256 columns, then neighbouring
// pairs of stripes. Absent columns and stripes count as the identity (-0.0 for sums), which changes no bit.
#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "schedule/pair_sums.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {

// Combines lanes whose numbers differ by `from`, then by the next power of two towards `to`; every lane gets the
// result.
Reg RowLowering::butterfly(Op op, Reg value, int from, int to) {
  if (config_.lanes == 1 || from < 1) return value;
  for (int m = from;; m = from > to ? m / 2 : m * 2) {
    value = combine(op, value, b_.shuffle_xor(value, m));
    if (m == to) return value;
  }
}

std::optional<Values> RowLowering::fold(Op op, const std::optional<Values>& a, const std::optional<Values>& b) {
  if (!a || !b) return a ? a : b;
  return trireme::combine(b_, op, *a, *b);
}

void RowLowering::join(Op op, OpenSums& open, std::optional<Values> sum) {
  int level = 0;
  for (; !open.empty() && open.back().first == level; ++level) {
    sum = fold(op, open.back().second, sum);
    open.pop_back();
  }
  open.emplace_back(level, std::move(sum));
}

namespace {

// The place of a step in a depth-first walk of the tree: few sums are open at a time.
int reversed(int step, int bits) {
  int place = 0;
  for (int bit = 0; bit < bits; ++bit) place |= ((step >> bit) & 1) << (bits - 1 - bit);
  return place;
}

}  // namespace

// With registers for half of a stripe's sums its chunks are visited as they lie: those that share a store come
// together.
RowLowering::Trees::Trees(RowLowering& lowering, std::vector<Op> ops, int chunks)
    : lowering_(lowering),
      ops_(std::move(ops)),
      chunks_(chunks),
      in_order_(ops_.empty() || lowering.whole_lines()),
      open_(ops_.size()) {}

int RowLowering::Trees::place(int step) const {
  return in_order_ ? step : reversed(step, std::countr_zero(static_cast<unsigned>(chunks_)));
}

void RowLowering::Trees::join(std::size_t which, int step, std::optional<Values> sum) {
  Op op = ops_[which];
  OpenSums& open = open_[which];
  if (!in_order_) return lowering_.join(op, open, std::move(sum));
  int half = chunks_ / 2;
  if (step < half || half == 0) return void(open.emplace_back(0, std::move(sum)));
  std::optional<Values>& other = open[step - half].second;
  other = lowering_.fold(op, other, sum);
}

std::optional<Values> RowLowering::Trees::sum(std::size_t which) {
  OpenSums& open = open_[which];
  for (; open.size() > 1; open.resize(open.size() / 2))
    for (std::size_t k = 0; k < open.size() / 2; ++k)
      open[k].second = lowering_.fold(ops_[which], open[k].second, open[k + open.size() / 2].second);
  return open.back().second;
}

std::vector<Op> RowLowering::ops_of(std::size_t sweep, Pass pass) const {
  const Stage& stage = stages_.sweeps[sweep];
  if (pass == Pass::Terms) return std::vector<Op>(stage.folds.size(), Op::Sum);
  std::vector<Op> ops;
  for (NodeId id : stage.reductions) ops.push_back(program_[id].op);
  for (const FoldTotals& each : stage.folds) ops.push_back(folds()[each.fold].first);
  return ops;
}

// What is added up of a chunk, with the identity where a column is absent.
Values RowLowering::addend(std::size_t sweep, Pass pass, std::size_t which, const Leaf& leaf) {
  const Stage& stage = stages_.sweeps[sweep];
  if (pass == Pass::Terms) {
    Values terms;
    const Terms& at_hand = terms_at_hand_[which];
    const FoldTotals& fold = stage.folds[which];
    const Values elements = chunk(fold.element, leaf);
    const Values weights = fold.weight == no_node ? Values{} : chunk(fold.weight, leaf);
    for (std::size_t e = 0; e < elements.size(); ++e)
      terms.push_back(term(at_hand, elements[e], weights.empty() ? Reg{} : weights[e]));
    return present(std::move(terms), Op::Sum, leaf);
  }
  if (which < stage.reductions.size()) {
    const Node& reduction = program_[stage.reductions[which]];
    return present(chunk(reduction.args[0], leaf), reduction.op, leaf);
  }
  const FoldTotals& fold = stage.folds[which - stage.reductions.size()];
  return present(chunk(fold.element, leaf), folds()[fold.fold].first, leaf);
}

Values RowLowering::present(Values values, Op op, const Leaf& leaf) {
  if (leaf.id >= 0 ? !leaf.partial : !leaf.mask) return values;  // what a missing row sums up to is never stored
  return where_present(b_, op, leaf.mask, std::move(values));
}

// A level across lanes whose numbers differ by `lanes`: each half of them keeps one half of the values.
Values RowLowering::halved(Op op, const Values& values, int lanes) {
  const std::size_t half = values.size() / 2;
  const Reg upper = b_.lane_bit(lanes);
  Values low, high;
  for (std::size_t k = 0; k < half; ++k) low.push_back(values[k]), high.push_back(values[k + half]);
  return exchanged(b_, op, upper, std::move(low), high, lanes);
}

// `stripes` (a power of two of them) hold `vector` values a lane, already added over the chunks of each stripe. While
// more than one value is left, a level across lanes halves them: each half of the lanes keeps one half and sends the
// other, so w values cost w - 1 shuffles and not w a level. What they stood for (element, stripe) then stands in the
// lane's number. All lanes take part, or as many neighbours as `lanes` says.
Reg RowLowering::across_lanes(Op op, std::vector<std::optional<Values>> stripes, int lanes) {
  // Whole stripes that do not exist need no work: the tree is cut at its top.
  while (stripes.size() > 1 &&
         std::none_of(stripes.begin() + stripes.size() / 2, stripes.end(), [](const auto& s) { return bool(s); }))
    stripes.resize(stripes.size() / 2);
  Values values;
  if (op != Op::Sum) {  // the order of a maximum changes nothing: the fewest shuffles
    std::optional<Reg> all;
    for (const auto& stripe : stripes)
      if (stripe)
        for (Reg value : *stripe) all = all ? combine(op, *all, value) : value;
    return butterfly(op, all ? *all : b_.number(identity_of(op)), lanes / 2, 1);
  }
  if (config_.simd) {  // shuffles are cheap, and one value a lane leaves nothing to exchange
    for (const auto& stripe : stripes)
      values.push_back(stripe ? butterfly(op, (*stripe)[0], lanes / 2, 1) : b_.number(identity_of(op)));
    while (values.size() > 1) {
      for (std::size_t k = 0; k < values.size() / 2; ++k) values[k] = combine(op, values[2 * k], values[2 * k + 1]);
      values.resize(values.size() / 2);
    }
    return values[0];
  }
  for (const auto& stripe : stripes)
    for (int e = 0; e < config_.vector; ++e) values.push_back(stripe ? (*stripe)[e] : b_.number(identity_of(op)));

  int element_bits = std::countr_zero(static_cast<unsigned>(config_.vector));
  int bits = std::countr_zero(static_cast<unsigned>(values.size()));
  std::vector<int> lane_of_bit(bits, 0);  // where a bit of the value's number went; 0: still several registers
  for (int m = lanes / 2; m >= 1; m /= 2) {
    if (values.size() == 1) {
      values[0] = combine(op, values[0], b_.shuffle_xor(values[0], m));
      continue;
    }
    std::size_t half = values.size() / 2;
    lane_of_bit[std::countr_zero(half)] = m;
    values = halved(op, values, m);
  }
  std::vector<bool> in_registers(bits);
  for (int bit = 0; bit < bits; ++bit) in_registers[bit] = !lane_of_bit[bit];
  auto reduce_bit = [&](int bit) {
    if (int m = lane_of_bit[bit]) {
      for (Reg& value : values) value = combine(op, value, b_.shuffle_xor(value, m));
      return;
    }
    in_registers[bit] = false;
    std::size_t step = std::size_t{1} << std::count(in_registers.begin(), in_registers.begin() + bit, true);
    Values sums;
    for (std::size_t k = 0; k < values.size(); ++k)
      if (!(k & step)) sums.push_back(combine(op, values[k], values[k + step]));
    values = std::move(sums);
  };
  for (int bit = element_bits - 1; bit >= 0; --bit) reduce_bit(bit);
  for (int bit = element_bits; bit < bits; ++bit) reduce_bit(bit);
  return values[0];
}

// The same for stripes that stay apart: every lane gets the total of each. Level by level of all stripes, as each
// waits for its shuffle.
std::vector<Reg> RowLowering::across_lanes_apart(Op op, std::vector<Values> stripes) {
  std::vector<Reg> totals;
  if (config_.simd || stripes.empty()) {
    for (Values& each : stripes) totals.push_back(across_lanes(op, {std::move(each)}, config_.lanes));
    return totals;
  }
  if (op != Op::Sum)  // the order of a maximum changes nothing
    for (Values& each : stripes) {
      Reg all = each[0];
      for (std::size_t e = 1; e < each.size(); ++e) all = combine(op, all, each[e]);
      each = Values{all};
    }
  std::vector<int> element_lanes;  // where the elements' bits went, highest first
  for (int m = config_.lanes / 2; m >= 1; m /= 2) {
    if (stripes[0].size() > 1) element_lanes.push_back(m);
    for (Values& values : stripes) {
      if (values.size() > 1) values = halved(op, values, m);
      else values[0] = combine(op, values[0], b_.shuffle_xor(values[0], m));
    }
  }
  for (int m : element_lanes)
    for (Values& values : stripes)
      for (Reg& value : values) value = combine(op, value, b_.shuffle_xor(value, m));
  for (Values& values : stripes) {  // more elements than lanes have bits for
    while (values.size() > 1) {
      for (std::size_t k = 0; k < values.size() / 2; ++k)
        values[k] = combine(op, values[k], values[k + values.size() / 2]);
      values.resize(values.size() / 2);
    }
    totals.push_back(values[0]);
  }
  return totals;
}

// Unrolled rows of several groups: one number a group through scratch, one barrier, then every group finishes the tree
// by itself. In a cluster each group sends its number to every block, lane by lane.
void RowLowering::publish(std::size_t k, std::size_t which, Reg partial) {
  if (config_.cluster > 1) {
    Reg place = b_.add(b_.mul(rank_, config_.groups), group_);
    b_.emit({.code = Do::Send,
             .type = *program_.compute,
             .space = Space::Cluster,
             .a = parity_,
             .b = place,
             .c = b_.below(lane_, 0, b_.index(config_.cluster)),
             .d = lane_,
             .imm = sums_of(k, which),
             .imm2 = mailboxes_at_[k],
             .values = {partial}});
    return;
  }
  b_.emit({.code = Do::StoreOne,
           .type = *program_.compute,
           .space = Space::Scratch,
           .a = parity_,
           .b = group_,
           .c = b_.below(lane_, 0, one_index_),
           .imm = sums_of(k, which),
           .values = {partial}});
}

// What group number first + n sent of a total.
Reg RowLowering::published(std::size_t k, std::size_t which, Reg first, int n, Reg mask) {
  Reg value = b_.fresh(Bank::Lane);
  b_.emit({.code = Do::Load,
           .type = *program_.compute,
           .space = Space::Scratch,
           .a = parity_,
           .b = first,
           .c = mask,
           .imm = sums_of(k, which) + n * value_bytes(),
           .values = {value}});
  return value;
}

Reg RowLowering::across_groups(std::size_t k, std::size_t which, Op op) {
  // Each lane takes as many neighbouring sums as it must.
  int count = config_.groups * config_.cluster;
  int each = static_cast<int>(std::bit_ceil(static_cast<unsigned>((count + config_.lanes - 1) / config_.lanes)));
  Reg first = each > 1 ? b_.mul(lane_, each) : lane_;
  std::vector<Reg> sums;
  for (int n = 0; n < each; ++n) {
    Reg mask = count == each * config_.lanes ? Reg{} : b_.below(first, n, b_.index(count));
    Reg value = published(k, which, first, n, mask);
    if (mask) value = b_.primitive(Op::Select, {mask, value, b_.number(identity_of(op))});
    sums.push_back(value);
  }
  while (sums.size() > 1) {
    for (std::size_t n = 0; n < sums.size() / 2; ++n) sums[n] = combine(op, sums[2 * n], sums[2 * n + 1]);
    sums.resize(sums.size() / 2);
  }
  // Lanes beyond `count` hold identities and would stay without the total: all lanes take part.
  return butterfly(op, sums[0], 1, config_.lanes / 2);
}

void RowLowering::store_stripe(std::size_t which, Reg total, Reg stripe) {
  Instr store{.code = Do::StoreOne, .type = *program_.compute, .space = Space::Scratch, .values = {total}};
  if (config_.simd) {
    // [reduction][stripe]; the second region begins after as many totals as the row has stripes.
    Reg place = which == 0 ? stripe : b_.add(stripe, b_.mul(stripes_, static_cast<std::int64_t>(which)));
    store.b = place;
    store.imm = totals_at_;
  } else {
    store.b = stripe;
    store.imm = totals_at_ + static_cast<std::int64_t>(which) * 2 * config_.stripes_of_row() * value_bytes();
    // Lane 0, where the stripe exists.
    Reg past = b_.index(Do::IndexSub, stripes_, stripe);
    Reg first_lane = b_.below(lane_, 0, b_.index(Do::IndexMin, past, 1));
    store.c = first_lane;
  }
  b_.emit(std::move(store));
}

// Loops: the totals of all stripes lie in scratch; `lanes` neighbours at a time become one, until one is left.
Reg RowLowering::across_stripes(std::size_t which, Op op) {
  Type type = *program_.compute;
  Reg value = b_.fresh(Bank::Lane);
  Reg none = b_.number(identity_of(op));
  if (config_.simd) {
    Reg base = b_.add(b_.mul(b_.mul(stripes_, static_cast<std::int64_t>(which)), value_bytes()), totals_at_);
    Reg count = b_.copy(stripes_);
    if (config_.compact) {
      pair_in_place(
          b_, op, zero_, one_index_, count, [&](Reg from) { return b_.load_one_scratch(type, 0, base, from); },
          [&](Reg to, Reg sum) {
            b_.emit({.code = Do::StoreOne, .type = type, .space = Space::Scratch, .a = base, .b = to, .values = {sum}});
          });
      return b_.load_one_scratch(type, 0, base);
    }
    b_.repeat_while_less(one_index_, count, [&] {
      Reg groups = b_.index(Do::IndexShiftRight, b_.add(count, config_.lanes - 1),
                            std::countr_zero(static_cast<unsigned>(config_.lanes)));
      Reg q = b_.copy(zero_), from = b_.copy(zero_);
      b_.repeat_while_less(q, groups, [&] {
        Reg mask = b_.below(from, 0, count);
        Reg loaded = b_.fresh(Bank::Lane);
        b_.emit({.code = Do::Load,
                 .type = type,
                 .space = Space::Scratch,
                 .a = base,
                 .b = from,
                 .c = mask,
                 .values = {loaded}});
        Reg sum = butterfly(op, b_.primitive(Op::Select, {mask, loaded, none}), 1, config_.lanes / 2);
        b_.emit({.code = Do::StoreOne, .type = type, .space = Space::Scratch, .a = base, .b = q, .values = {sum}});
        b_.increase(q, 1);
        b_.increase(from, config_.lanes);
      });
      b_.assign(count, groups);
    });
    b_.emit({.code = Do::LoadOne, .type = type, .space = Space::Scratch, .dst = value, .a = base});
    return value;
  }

  // Thread machines know the number of columns. Levels go to and fro between the two halves of the region.
  std::int64_t count = contract::stripes(config_.columns);
  std::int64_t half = count * value_bytes();
  std::int64_t from = totals_at_ + static_cast<std::int64_t>(which) * 2 * half, to = from + half;
  auto load_lanes = [&](Reg position, std::int64_t present) {
    Reg mask = b_.below(position, 0, b_.index(present));
    Reg loaded = b_.fresh(Bank::Lane);
    b_.emit({.code = Do::Load,
             .type = type,
             .space = Space::Scratch,
             .b = position,
             .c = mask,
             .imm = from,
             .values = {loaded}});
    return b_.primitive(Op::Select, {mask, loaded, none});
  };
  while (count > config_.lanes) {
    std::int64_t groups = (count + config_.lanes - 1) / config_.lanes;
    Reg base = b_.copy(zero_);
    b_.repeat_while_less(base, b_.index(groups), [&] {
      Reg q = b_.add(base, group_);
      Reg sum = butterfly(op, load_lanes(b_.add(b_.mul(q, config_.lanes), lane_), count), 1, config_.lanes / 2);
      Reg past = b_.index(Do::IndexSub, b_.index(groups), q);
      Reg first_lane = b_.below(lane_, 0, b_.index(Do::IndexMin, past, 1));
      b_.emit({.code = Do::StoreOne,
               .type = type,
               .space = Space::Scratch,
               .b = q,
               .c = first_lane,
               .imm = to,
               .values = {sum}});
      b_.increase(base, config_.groups);
    });
    b_.emit({.code = Do::Barrier});
    std::swap(from, to);
    count = groups;
  }
  Reg loaded = load_lanes(lane_, count);
  return butterfly(op, loaded, 1, config_.lanes / 2);
}

}  // namespace trireme
