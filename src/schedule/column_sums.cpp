// Column sums and maxima while rows go by: a block of rows adds up in registers (unrolled stripes) or in its partial
// row (loops).
#include <algorithm>

#include "ir/contract.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {

template <typename Body>
void RowLowering::each_unrolled(Body&& body) {
  for (int stripe = 0; stripe < config_.stripes; ++stripe)
    for (int c = 0; c < chunks(); ++c)
      if (Leaf leaf = unrolled_leaf(stripe, c, state_); leaf.id >= 0) body(leaf);
}

Reg by_entry(KernelBuilder& b, SumNumber first, int sums, Reg entry) {
  auto of_kind = [&](int kind) { return b.slot(static_cast<SumNumber>(static_cast<int>(first) + kind), sums); };
  Reg value = b.copy(of_kind(2)), boundary = b.slot(SumNumber::Boundary, sums);
  b.when_less(entry, b.add(boundary, 1), [&] { b.assign(value, of_kind(1)); });
  b.when_less(entry, boundary, [&] { b.assign(value, of_kind(0)); });
  return value;
}

Reg all_blocks(KernelBuilder& b, const SumClass& sums, int number) {
  return sums.where.row.present ? b.slot(SumNumber::AllBlocks, number) : b.slot({Slot::What::Blocks, number});
}

Reg row_of_entries(KernelBuilder& b, const ArrayLayout& layout, std::size_t array, Type type, Reg base, Reg row) {
  Reg place = b.index(Do::IndexMul, row, b.slot_of(array, Slot::What::Stride));
  for (int j = 0; j < layout.row_jumps; ++j) {
    const Reg jumps = b.index(Do::IndexDivide, row, b.slot_of(array, Slot::What::Every, j));
    place = b.add(place, b.index(Do::IndexMul, jumps, b.slot_of(array, Slot::What::Jump, j)));
  }
  return b.pointer(base, place, static_cast<std::int64_t>(bytes(type)));
}

// Which classes this kernel adds to: those whose results it has.
void RowLowering::find_sums(const std::vector<SumClass>& classes) {
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (program_.results[classes[c].results[0]].value == no_node) continue;
    (classes[c].by_blocks() ? sums_ : row_sums_).push_back({static_cast<int>(c), &classes[c]});
  }
}

// Where the results of a class have their partial sums of a block.
void RowLowering::point_at_partials(ClassSums& sums, Reg block) {
  sums.partial_rows.clear();
  Reg base = b_.pointer_to(partials_array(sums.number));
  Reg stride = b_.slot_of(partials_array(sums.number), Slot::What::Stride);
  Reg blocks = all_blocks(b_, *sums.what, sums.number);
  for (std::size_t q = 0; q < sums.what->results.size(); ++q) {
    Reg place = q == 0 ? block : b_.add(block, b_.mul(blocks, static_cast<std::int64_t>(q)));
    sums.partial_rows.push_back(b_.pointer(base, b_.index(Do::IndexMul, place, stride), value_bytes()));
  }
}

bool RowLowering::of_rows(const ClassSums& sums) const {
  return program_[program_.results[sums.what->results[0]].value].payload == of_row_values;
}

// From the identity on. `blocks_left`: where a team may have no block.
void RowLowering::begin_column_sums(ClassSums& sums, Reg blocks_left) {
  sums.columns.assign(sums.what->results.size(), {});
  sums.rows.clear();
  const double none = identity_of(sums.what->op);
  if (of_rows(sums)) {
    for (std::size_t q = 0; q < sums.what->results.size(); ++q) sums.rows.push_back(b_.number(none));
    return;
  }
  if (!config_.stripes || sums.what->of_groups) return clear_partials(sums, blocks_left);
  for (auto& leaves : sums.columns) {
    leaves.resize(row_leaves_.size());
    for (int stripe = 0; stripe < config_.stripes; ++stripe)
      for (int c = 0; c < chunks(); ++c)
        if (c * chunk_columns() < config_.stripe() && stripe * stripe_step() + c * chunk_columns() < config_.columns)
          for (int e = 0; e < config_.vector; ++e) leaves[stripe * chunks() + c].push_back(b_.number(none));
  }
}

// In loops the sums live in the partial row itself, and so do those of groups. A thread clears just the columns it will
// add to; before those of groups there is a barrier.
void RowLowering::clear_partials(const ClassSums& sums, Reg blocks_left) {
  Values none(sums.what->of_groups ? 1 : config_.vector, b_.number(identity_of(sums.what->op)));
  Reg wide = columns_;
  if (sums.what->of_groups) wide = b_.index(sums.what->where.column.extent(config_.columns));
  auto clear = [&](Reg column, std::int64_t offset, Reg mask) {
    for (Reg partial : sums.partial_rows)
      b_.emit({.code = Do::Store,
               .type = *program_.compute,
               .a = partial,
               .b = column,
               .c = mask,
               .imm = offset * value_bytes(),
               .values = none});
  };
  Reg at = b_.copy(zero_);
  if (config_.compact) {
    b_.count(zero_, wide, config_.lanes,
             [&](Reg at) { clear(at, 0, config_.lanes > 1 ? b_.below(at, 0, wide) : Reg{}); });
    return;
  }
  if (config_.simd) {
    Reg full = b_.index(Do::IndexSub, wide, b_.index(Do::IndexAnd, wide, config_.lanes - 1));
    b_.repeat_while_less(at, full, [&] {
      clear(at, 0, {});
      b_.increase(at, config_.lanes);
    });
    b_.when_less(at, wide, [&] { clear(at, 0, b_.below(at, 0, wide)); });
    return;
  }
  if (sums.what->of_groups) {
    const Reg limit = blocks_left ? b_.index(Do::IndexMin, wide, b_.index(Do::IndexMul, blocks_left, wide)) : wide;
    b_.repeat_while_less(at, wide, [&] {
      const Reg entry = b_.add(at, row_owner_);
      clear(entry, 0, b_.below(entry, 0, limit));
      b_.increase(at, config_.lanes * config_.groups);
    });
    return;
  }
  b_.repeat_while_less(at, stripes_, [&] {
    Reg column = b_.add(b_.mul(b_.add(at, group_), config_.stripe()), thread_column_);
    for (int c = 0; c < chunks() && c * chunk_columns() < config_.stripe(); ++c)
      clear(column, c * chunk_columns(),
            both(b_.below(column, c * chunk_columns(), columns_), in_stripe(c * chunk_columns())));
    b_.increase(at, config_.groups);
  });
}

// Simd machines walk rows as they lie: a block's rows may come in pieces, between those of other entries.
Reg RowLowering::begin_piece(ClassSums& sums, Reg end, bool whole_blocks) {
  const AxisIndexing& row = sums.what->where.row;
  Reg k = row_, block, size;
  if (row.present) {
    Reg entry, round;
    if (row.wrap) {  // a round of all entries, `divide` rows each
      const std::int64_t period = row.divide * row.wrap;
      round = b_.index(Do::IndexDivide, row_, period);
      k = b_.index(Do::IndexSub, row_, b_.mul(round, period));
    }
    entry = row.divide == 1 ? k : b_.index(Do::IndexDivide, k, row.divide);
    k = row.divide == 1 ? zero_ : b_.index(Do::IndexSub, k, b_.mul(entry, row.divide));
    end = b_.index(Do::IndexMin, end, b_.index(Do::IndexSub, b_.add(row_, row.divide), k));
    if (row.wrap) k = b_.add(b_.mul(round, row.divide), k);
    if (&sums == &sums_[0]) entry_ = entry;
    size = by_entry(b_, SumNumber::RowBlock, sums.number, entry);
    block = b_.index(Do::IndexMul, entry, b_.slot(SumNumber::MostBlocks, sums.number));
  } else {
    size = b_.slot({Slot::What::RowBlock, sums.number});
  }
  const Reg which = b_.index(Do::IndexDivide, k, size);
  const Reg inside = b_.index(Do::IndexSub, k, b_.index(Do::IndexMul, which, size));
  end = b_.index(Do::IndexMin, end, b_.index(Do::IndexSub, b_.add(row_, size), inside));
  point_at_partials(sums, block ? b_.add(block, which) : which);
  if (whole_blocks) {
    begin_column_sums(sums);
    return end;
  }
  // Others go on with what is there.
  auto load = [&](Reg partial, Reg column, std::int64_t offset, Reg mask, Reg value) {
    b_.emit({.code = Do::Load,
             .type = *program_.compute,
             .a = partial,
             .b = column,
             .c = mask,
             .imm = offset * value_bytes(),
             .values = {value}});
  };
  if (sums.what->of_groups || (!config_.stripes && !of_rows(sums))) {
    b_.when_less(inside, one_index_, [&] { clear_partials(sums, {}); });
    return end;
  }
  begin_column_sums(sums);
  b_.when_less(zero_, inside, [&] {
    for (std::size_t q = 0; q < sums.partial_rows.size(); ++q) {
      if (of_rows(sums)) {
        b_.emit({.code = Do::LoadOne, .type = *program_.compute, .dst = sums.rows[q], .a = sums.partial_rows[q]});
        continue;
      }
      each_unrolled([&](const Leaf& leaf) {
        load(sums.partial_rows[q], leaf.column, leaf.offset, leaf.mask, sums.columns[q][leaf.id][0]);
      });
    }
  });
  return end;
}

std::pair<RowLowering::ClassSums*, std::size_t> RowLowering::sums_of_result(std::size_t result) {
  for (auto* list : {&sums_, &row_sums_})
    for (ClassSums& each : *list)
      for (std::size_t q = 0; q < each.what->results.size(); ++q)
        if (each.what->results[q] == static_cast<int>(result)) return {&each, q};
  return {nullptr, 0};
}

void RowLowering::add_to_columns(std::size_t result, const Leaf& leaf) {
  auto [sums_at, q] = sums_of_result(result);
  const Op op = sums_at->what->op;
  Values values = chunk(program_[program_.results[result].value].args[0], leaf);
  if (leaf.id >= 0) {
    Values& sums = sums_at->columns[q][leaf.id];
    // A team without a row adds nothing; columns that do not exist are never written.
    for (std::size_t e = 0; e < values.size(); ++e) {
      Reg value = values[e];
      if (state_.exists) value = b_.primitive(Op::Select, {leaf.mask, value, b_.number(identity_of(op))});
      b_.emit({.code = Do::Primitive, .op = combination_of(op), .dst = sums[e], .a = sums[e], .b = value});
    }
    return;
  }
  Instr load{.code = Do::Load,
             .type = *program_.compute,
             .a = sums_at->partial_rows[q],
             .b = leaf.column,
             .c = leaf.mask,
             .imm = leaf.offset * value_bytes()};
  for (int e = 0; e < config_.vector; ++e) load.values.push_back(b_.fresh(Bank::Lane));
  Instr store = load;
  store.code = Do::Store;
  b_.emit(load);
  for (int e = 0; e < config_.vector; ++e) store.values[e] = combine(op, load.values[e], values[e]);
  b_.emit(std::move(store));
}

// A row's own value: the sums of a block stay in a register, those over everything are kept by row.
void RowLowering::add_to_rows(std::size_t result) {
  auto [sums, q] = sums_of_result(result);
  Reg value = one(program_[program_.results[result].value].args[0]);
  if (sums->what->by_blocks()) {
    const Op op = sums->what->op;
    if (state_.exists) value = b_.primitive(Op::Select, {state_.exists, value, b_.number(identity_of(op))});
    b_.emit({.code = Do::Primitive, .op = combination_of(op), .dst = sums->rows[q], .a = sums->rows[q], .b = value});
    return;
  }
  Reg base = b_.pointer_to(partials_array(sums->number)), place = row_;
  if (q > 0) {
    const Reg stride = b_.slot_of(partials_array(sums->number), Slot::What::Stride);
    place = b_.add(place, b_.mul(stride, static_cast<std::int64_t>(q)));
  }
  store_by_owner(*program_.compute, b_.pointer(base, place, value_bytes()), value, {});
}

void RowLowering::finish_column_sums(const ClassSums& sums) {
  if (of_rows(sums)) {
    for (std::size_t q = 0; q < sums.rows.size(); ++q)
      store_by_owner(*program_.compute, sums.partial_rows[q], sums.rows[q], {});
    return;
  }
  if (!config_.stripes || sums.what->of_groups) return;
  each_unrolled([&](const Leaf& leaf) {
    for (std::size_t q = 0; q < sums.columns.size(); ++q)
      b_.emit({.code = Do::Store,
               .type = *program_.compute,
               .a = sums.partial_rows[q],
               .b = leaf.column,
               .c = leaf.mask,
               .imm = leaf.offset * value_bytes(),
               .values = sums.columns[q][leaf.id]});
  });
}

// A team that takes all rows of an entry adds up each block as others do, and keeps what blocks came to in registers.
std::vector<Reg> RowLowering::sums_of_block() const {
  std::vector<Reg> all = sums_[0].rows;
  for (const std::vector<Values>& leaves : sums_[0].columns)
    for (const Values& leaf : leaves) all.insert(all.end(), leaf.begin(), leaf.end());
  return all;
}

void RowLowering::begin_entry() {
  const SumClass& what = *sums_[0].what;
  const Reg row_block = by_entry(b_, SumNumber::RowBlock, sums_[0].number, entry_);
  const Reg block_end = b_.add(row_, row_block);
  begin_column_sums(sums_[0]);
  const int levels = entry_sums(what, config_.columns).levels;
  entry_blocks_.emplace(BlocksOfEntry{row_block, block_end, b_.copy(zero_),
                                      PairStack(b_, zero_, levels, what.op, sums_of_block().size())});
}

// After a row. The last block stays where it was added up.
void RowLowering::finish_block(Reg end) {
  BlocksOfEntry blocks = *entry_blocks_;
  auto finish = [&] {
    const std::vector<Reg> sums = sums_of_block();
    blocks.sums.push(sums, blocks.count);
    const Reg none = b_.number(identity_of(sums_[0].what->op));
    for (Reg each : sums) b_.assign(each, none);
    b_.increase(blocks.count, 1);
    b_.emit({.code = Do::IndexAdd, .dst = blocks.block_end, .a = blocks.block_end, .b = blocks.row_block});
  };
  b_.when_less(
      row_, blocks.block_end, [] {}, [&] { b_.when_less(row_, end, finish); });
}

void RowLowering::finish_entry() {
  const ClassSums& sums = sums_[0];
  entry_blocks_->sums.add_held(sums_of_block(), entry_blocks_->count);
  for (std::size_t q = 0; q < sums.what->results.size(); ++q) {
    const auto r = static_cast<std::size_t>(sums.what->results[q]);
    const Output& result = program_.results[r];
    const std::size_t array = program_.array_of_result(r);
    const ArrayLayout layout = layout_.array(array);
    const Reg base = b_.pointer_to(array);
    const Reg pointer = row_of_entries(b_, layout, array, *result.type, base, entry_);
    auto added = [&](Reg before, Reg sum) { return combine(sums.what->op, before, sum); };
    if (of_rows(sums)) {
      Reg total = sums.rows[q];
      if (result.accumulate)
        total = added(
            b_.into(Bank::Lane, {.code = Do::LoadOne, .type = *result.type, .a = pointer, .c = state_.exists}), total);
      store_by_owner(*result.type, pointer, total, {});
      continue;
    }
    std::optional<ColumnSteps> steps;
    if (layout.strided) steps = column_steps(b_, layout, array);
    const ColumnMap map{.axis = result.spread.column, .steps = steps ? &*steps : nullptr};
    each_unrolled([&](const Leaf& leaf) {
      Values totals = sums.columns[q][leaf.id];
      Instr access = element_access(Do::Load, *result.type, layout, leaf);
      access.a = pointer, access.c = leaf.mask;
      if (result.accumulate) {
        const Values before = steps ? load_mapped(*result.type, pointer, map, leaf) : access.values = fresh_values();
        if (!steps) b_.emit(access);
        for (std::size_t e = 0; e < totals.size(); ++e) totals[e] = added(before[e], totals[e]);
      }
      if (steps) return store_mapped(*result.type, pointer, map, leaf, totals);
      access.code = Do::Store, access.values = totals;
      b_.emit(std::move(access));
    });
  }
}

}  // namespace trireme
