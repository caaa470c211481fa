// Folds (math/reductions.hpp): the terms of a stripe, and merging stripes in the contract's order. A right neighbour
// that does not exist leaves the left one as it is.
#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/integers.hpp"
#include "ir/rewrite.hpp"
#include "passes/passes.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {
namespace {

// The formula with some of its arguments known: divisions by powers of two become products, weights become numbers.
FoldFormula with_numbers(const FoldFormula& formula, const std::vector<std::optional<std::int64_t>>& known) {
  FoldFormula made;
  Program numbered = rewrite(formula.program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    if (node.op == Op::Operand && known[node.payload]) return out.number(static_cast<double>(*known[node.payload]));
    return copy_node(out, node, args);
  });
  made.program = in_canonical_order(simplify(numbered));
  for (const Output& result : made.program.results) made.values.push_back(result.value);
  return made;
}

// Evaluates those nodes of a formula that `wanted` says and that are not known yet.
template <typename Wanted>
void evaluate_formula(KernelBuilder& b, const Program& formula, std::vector<Reg>& known, Wanted&& wanted) {
  for (NodeId id = 0; id < formula.size(); ++id) {
    const Node& node = formula[id];
    if (known[id] || node.op == Op::Operand || !wanted(id)) continue;
    auto arg = [&](int k) { return k < node.arity ? known[node.args[k]] : Reg{}; };
    known[id] = node.op == Op::Number ? number(b, formula, node) : primitive(b, node, arg(0), arg(1), arg(2));
  }
}

void give(const Program& formula, std::vector<Reg>& known, std::initializer_list<Reg> arguments) {
  for (NodeId id = 0; id < formula.size(); ++id)
    if (formula[id].op == Op::Operand) known[id] = arguments.begin()[formula[id].payload];
}

}  // namespace

const FoldFormula& RowLowering::term_formula(std::int64_t fold, std::optional<std::int64_t> columns) {
  auto [found, is_new] = formulas_.try_emplace({fold, false, columns, std::nullopt});
  if (is_new)
    found->second = with_numbers(fold_term(folds()[fold], *program_.compute, true),
                                 {std::nullopt, std::nullopt, columns, std::nullopt});
  return found->second;
}

const FoldFormula& RowLowering::merge_formula(std::int64_t fold,
                                              const std::array<std::optional<std::int64_t>, 2>& columns) {
  const std::optional<std::int64_t> none;
  auto [found, is_new] = formulas_.try_emplace({fold, true, columns[0], columns[1]});
  if (is_new)
    found->second = with_numbers(fold_merge(folds()[fold], *program_.compute, true),
                                 {none, none, none, none, columns[0], columns[1]});
  return found->second;
}

// ---- a stripe ----

// What the second pass over a stripe evaluates. Values that were kept in scratch are loaded there.
void RowLowering::plan_elements(std::size_t k) {
  std::vector<bool> wanted(program_.size());
  for (const FoldTotals& each : stages_.sweeps[k].folds) {
    wanted[each.element] = true;
    if (each.weight != no_node) wanted[each.weight] = true;
  }
  const std::vector<NodeId>& nodes = work_[k].chunk;
  auto kept = [&](NodeId id) {
    return std::any_of(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.id == id && each.sweep <= k; });
  };
  elements_.emplace_back();
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    if (!wanted[*id]) continue;
    elements_[k].push_back(*id);
    const Node& node = program_[*id];
    if (kept(*id) || node.op == Op::Rotate || node.op == Op::Random || compares_integers(program_, node)) continue;
    for (NodeId arg : node) wanted[arg] = true;
  }
  std::reverse(elements_[k].begin(), elements_[k].end());
}

void RowLowering::evaluate_elements(std::size_t k, const Leaf& leaf) {
  for (const Kept& each : kept_) {
    if (config_.stripes || each.sweep > k || !std::binary_search(elements_[k].begin(), elements_[k].end(), each.id))
      continue;
    Instr load = kept_access(Do::Load, each.id, leaf);
    loop_values_.put(each.id, load.values = fresh_values());
    b_.emit(std::move(load));
  }
  evaluate_chunk(elements_[k], leaf);
}

// What all terms of the stripe at hand share. `columns`: the stripe's number of them, or `count`, a Lane register.
void RowLowering::begin_terms(std::size_t k, const std::vector<Reg>& firsts, std::optional<std::int64_t> columns,
                              Reg count) {
  terms_at_hand_.clear();
  for (std::size_t f = 0; f < firsts.size(); ++f) {
    Terms terms{&term_formula(stages_.sweeps[k].folds[f].fold, columns), {}};
    const Program& formula = terms.formula->program;
    std::vector<bool> by_element(formula.size());
    for (NodeId id = 0; id < formula.size(); ++id) {
      by_element[id] = is_element(formula[id]);
      for (NodeId arg : formula[id]) by_element[id] = by_element[id] || by_element[arg];
    }
    terms.known.resize(formula.size());
    give(formula, terms.known, {Reg{}, firsts[f], count, Reg{}});
    evaluate_formula(b_, formula, terms.known, [&](NodeId id) { return !by_element[id]; });
    terms_at_hand_.push_back(std::move(terms));
  }
}

void RowLowering::begin_terms(std::size_t k, int stripe, const std::vector<std::vector<Reg>>& firsts,
                              std::size_t which) {
  std::vector<Reg> of_stripe;
  for (const std::vector<Reg>& each : firsts) of_stripe.push_back(each[which]);
  const std::int64_t first_column = stripe * contract::stripe;
  if (!group_column_ || always_inside(first_column + contract::stripe - config_.lanes * config_.vector))
    return begin_terms(k, of_stripe, std::min(contract::stripe, config_.columns - first_column), {});
  Reg left = b_.index(Do::IndexSub, columns_, b_.add(group_column_, first_column));
  Reg columns = b_.index(Do::IndexMin, left, contract::stripe);
  begin_terms(k, of_stripe, {}, b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = columns}));
}

Reg RowLowering::term(const Terms& terms, Reg element, Reg weight) {
  const Program& formula = terms.formula->program;
  std::vector<Reg> known = terms.known;
  for (NodeId id = 0; id < formula.size(); ++id)
    if (is_element(formula[id])) known[id] = formula[id].payload == 0 ? element : weight;
  evaluate_formula(b_, formula, known, [](NodeId) { return true; });
  return known[terms.formula->values[0]];
}

// ---- neighbours ----

// `columns` of the left and the right one where they are known, else `counts`, Lane registers.
RowLowering::Pair RowLowering::merged(std::int64_t fold, const Pair& left, const Pair& right,
                                      const std::array<std::optional<std::int64_t>, 2>& columns,
                                      const std::array<Reg, 2>& counts) {
  const FoldFormula& formula = merge_formula(fold, columns);
  std::vector<Reg> known(formula.program.size());
  give(formula.program, known, {left[0], left[1], right[0], right[1], counts[0], counts[1]});
  evaluate_formula(b_, formula.program, known, [](NodeId) { return true; });
  return {known[formula.values[0]], known[formula.values[1]]};
}

RowLowering::Pair RowLowering::chosen(Reg mask, const Pair& yes, const Pair& no) {
  Reg first = b_.primitive(Op::Select, {mask, yes[0], no[0]});
  return {first, b_.primitive(Op::Select, {mask, yes[1], no[1]})};
}

// Pairs begin at multiples of their columns, so only the row's last pair can be short, by the same number everywhere.
RowLowering::Pair RowLowering::merged(std::int64_t fold, const Pair& left, const Pair& right, const Merge& where) {
  const std::int64_t n = config_.columns, width = where.width, past = n % (2 * width);
  if (where.last_base + where.offset + 2 * width <= n) return merged(fold, left, right, {width, width}, {});
  if (!where.base) {
    const std::int64_t columns = std::min(width, n - where.offset - width);
    return columns > 0 ? merged(fold, left, right, {width, columns}, {}) : left;
  }
  Reg exists = b_.below(where.base, where.offset + width, columns_);
  if (past <= width) return chosen(exists, merged(fold, left, right, {width, width}, {}), left);
  Reg full = b_.below(where.base, where.offset + 2 * width - 1, columns_);
  Reg all = b_.number(static_cast<double>(width)), some = b_.number(static_cast<double>(past - width));
  Reg count = b_.primitive(Op::Select, {full, all, some});
  return chosen(exists, merged(fold, left, right, {width, std::nullopt}, {Reg{}, count}), left);
}

// The stripes of one group. In registers every lane merges all of them; few do so, more go to a lane each.
RowLowering::Pair RowLowering::across_unrolled(std::int64_t fold, std::vector<Pair> stripes) {
  const std::int64_t groups = std::int64_t{config_.groups} * config_.cluster;
  const std::int64_t last_base = (groups - 1) * config_.stripes * contract::stripe;
  if (!config_.simd && stripes.size() > 2 && config_.stripes <= config_.lanes) {
    stripes.resize(static_cast<std::size_t>(config_.stripes), stripes[0]);  // those beyond the row are never merged
    for (int m = 1; stripes.size() > 1; m *= 2) {
      Reg upper = b_.lane_bit(m);
      for (std::size_t k = 0; k < stripes.size() / 2; ++k)
        stripes[k] = chosen(upper, stripes[2 * k + 1], stripes[2 * k]);
      stripes.resize(stripes.size() / 2);
    }
    return across_lanes(
        fold, stripes[0],
        {.count = config_.stripes, .base = group_column_, .last_base = last_base, .unit = contract::stripe});
  }
  for (std::int64_t width = contract::stripe; stripes.size() > 1; width *= 2) {
    const std::size_t pairs = stripes.size() / 2;
    for (std::size_t k = 0; k < pairs; ++k)
      stripes[k] = merged(fold, stripes[2 * k], stripes[2 * k + 1],
                          {.width = width,
                           .base = group_column_,
                           .offset = static_cast<std::int64_t>(2 * k) * width,
                           .last_base = last_base});
    if (stripes.size() % 2) stripes[pairs] = stripes.back();
    stripes.resize((stripes.size() + 1) / 2);
  }
  return stripes[0];
}

// Every lane gets the totals of all.
RowLowering::Pair RowLowering::across_lanes(std::int64_t fold, Pair totals, const Lanes& lanes) {
  for (int m = 1; m < lanes.count; m *= 2) {
    Reg upper = b_.lane_bit(m);
    Reg other_first = b_.shuffle_xor(totals[0], m);
    const Pair other = {other_first, b_.shuffle_xor(totals[1], m)};
    const Pair left = chosen(upper, other, totals);
    if (!lanes.base && m * lanes.unit >= config_.columns) {
      totals = left;
      continue;
    }
    const Pair right = chosen(upper, totals, other);
    Reg base = b_.mul(b_.index(Do::IndexAnd, lane_, lanes.count - 2 * m), lanes.unit);
    if (lanes.base) base = b_.add(base, lanes.base);
    totals = merged(
        fold, left, right,
        {.width = m * lanes.unit, .base = base, .last_base = lanes.last_base + (lanes.count - 2 * m) * lanes.unit});
  }
  return totals;
}

// ---- groups of an unrolled row ----

RowLowering::Pair RowLowering::across_groups(std::size_t k, std::size_t which) {
  const FoldTotals& fold = stages_.sweeps[k].folds[which];
  const auto [first_total, second_total] = totals_of_fold(stages_.sweeps[k], which);
  const std::int64_t unit = config_.stripes * contract::stripe;
  const int count = config_.groups * config_.cluster;
  const int each = static_cast<int>(std::bit_ceil(static_cast<unsigned>((count + config_.lanes - 1) / config_.lanes)));
  Reg first = each > 1 ? b_.mul(lane_, each) : lane_;
  std::vector<Pair> parts;
  for (int n = 0; n < each; ++n) {
    const Reg mask = count == each * config_.lanes ? Reg{} : b_.below(first, n, b_.index(count));
    Reg value = published(k, first_total, first, n, mask);
    parts.push_back({value, published(k, second_total, first, n, mask)});
  }
  for (std::int64_t width = unit; parts.size() > 1; width *= 2) {
    for (std::size_t n = 0; n < parts.size() / 2; ++n)
      parts[n] = merged(fold.fold, parts[2 * n], parts[2 * n + 1],
                        {.width = width,
                         .base = b_.mul(first, unit),
                         .offset = static_cast<std::int64_t>(2 * n) * width,
                         .last_base = (config_.lanes - 1) * each * unit});
    parts.resize(parts.size() / 2);
  }
  return across_lanes(fold.fold, parts[0], {.count = config_.lanes, .base = {}, .unit = each * unit});
}

// ---- loops ----

RowLowering::Pair RowLowering::across_stripes(std::size_t k, std::size_t which) {
  const FoldTotals& fold = stages_.sweeps[k].folds[which];
  const std::array<std::size_t, 2> places = totals_of_fold(stages_.sweeps[k], which);
  if (config_.simd) return pair_by_pair(fold.fold, places);
  std::int64_t count = contract::stripes(config_.columns), unit = contract::stripe;
  const std::int64_t half = count * value_bytes();
  auto region = [&](std::size_t total, bool other) {
    return totals_at_ + static_cast<std::int64_t>(total) * 2 * half + (other ? half : 0);
  };
  bool flipped = false;
  auto load = [&](std::size_t total, Reg position) {
    Reg value = b_.fresh(Bank::Lane);
    b_.emit({.code = Do::Load,
             .type = *program_.compute,
             .space = Space::Scratch,
             .b = position,
             .c = b_.below(position, 0, b_.index(count)),
             .imm = region(total, flipped),
             .values = {value}});
    return value;
  };
  while (count > config_.lanes) {
    const std::int64_t blocks = (count + config_.lanes - 1) / config_.lanes;
    Reg base = b_.copy(zero_);
    b_.repeat_while_less(base, b_.index(blocks), [&] {
      Reg q = b_.add(base, group_), first = b_.mul(q, config_.lanes);
      Reg position = b_.add(first, lane_);
      Reg left = load(places[0], position), right = load(places[1], position);
      Reg before = b_.mul(first, unit);
      const Pair totals = across_lanes(fold.fold, {left, right},
                                       {.count = config_.lanes,
                                        .base = before,
                                        .last_base = (blocks + config_.groups) * config_.lanes * unit,
                                        .unit = unit});
      Reg past = b_.index(Do::IndexSub, b_.index(blocks), q);
      Reg first_lane = b_.below(lane_, 0, b_.index(Do::IndexMin, past, 1));
      for (std::size_t c : {0, 1})
        b_.emit({.code = Do::StoreOne,
                 .type = *program_.compute,
                 .space = Space::Scratch,
                 .b = q,
                 .c = first_lane,
                 .imm = region(places[c], !flipped),
                 .values = {totals[c]}});
      b_.increase(base, config_.groups);
    });
    b_.emit({.code = Do::Barrier});
    flipped = !flipped;
    count = blocks;
    unit *= config_.lanes;
  }
  Reg left = load(places[0], lane_), right = load(places[1], lane_);
  return across_lanes(fold.fold, {left, right}, {.count = config_.lanes, .base = {}, .unit = unit});
}

// Simd machines: the totals of all stripes lie in scratch; neighbours become one, level by level.
RowLowering::Pair RowLowering::pair_by_pair(std::int64_t fold, const std::array<std::size_t, 2>& places) {
  const Type type = *program_.compute;
  std::array<Reg, 2> bases;
  for (std::size_t c : {0, 1})
    bases[c] = b_.add(b_.mul(b_.mul(stripes_, static_cast<std::int64_t>(places[c])), value_bytes()), totals_at_);
  auto load = [&](std::size_t c, Reg place) { return b_.load_one_scratch(type, 0, bases[c], place); };
  auto load_pair = [&](Reg place) -> Pair {
    Reg first = load(0, place);
    return {first, load(1, place)};
  };
  auto store = [&](Reg place, const Pair& totals) {
    for (std::size_t c : {0, 1})
      b_.emit({.code = Do::StoreOne,
               .type = type,
               .space = Space::Scratch,
               .a = bases[c],
               .b = place,
               .values = {totals[c]}});
  };
  Reg count = b_.copy(stripes_), unit = b_.copy(b_.index(contract::stripe));
  b_.repeat_while_less(one_index_, count, [&] {
    Reg from = b_.copy(zero_), right = b_.copy(one_index_), to = b_.copy(zero_);
    Reg left_count = b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = unit});
    b_.repeat_while_less(right, count, [&] {
      Reg left_over = b_.index(Do::IndexSub, columns_, b_.index(Do::IndexMul, right, unit));
      Reg columns = b_.index(Do::IndexMin, left_over, unit);
      Reg right_count = b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = columns});
      const Pair left_totals = load_pair(from), right_totals = load_pair(right);
      store(to, merged(fold, left_totals, right_totals, {}, {left_count, right_count}));
      b_.increase(from, 2);
      b_.increase(right, 2);
      b_.increase(to, 1);
    });
    b_.when_less(from, count, [&] { store(to, load_pair(from)); });
    b_.emit({.code = Do::IndexShiftRight, .dst = count, .a = b_.add(count, 1), .imm = 1});
    b_.emit({.code = Do::IndexAdd, .dst = unit, .a = unit, .b = unit});
  });
  return load_pair(zero_);
}

void RowLowering::finish_totals(const FoldTotals& fold, const Pair& totals) {
  for (std::size_t c : {0, 1})
    if (fold.nodes[c] != no_node) row_values_[fold.nodes[c]] = names_.say(b_, fold.nodes[c], totals[c]);
}

}  // namespace trireme
