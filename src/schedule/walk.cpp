// Walks the rows: blocks of them, one after the other, with what runs ahead.
#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/index_arithmetic.hpp"
#include "schedule/picked_rows.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {

std::vector<std::size_t> RowLowering::used_operands() const {
  std::vector<bool> read = read_operands(program_);
  std::vector<std::size_t> operands;
  for (std::size_t k = 0; k < read.size(); ++k)
    if (read[k]) operands.push_back(k);
  return operands;
}

void RowLowering::open_mailboxes() {
  for (std::size_t k = 0; k < stages_.sweeps.size(); ++k)
    for (std::int64_t copy = 0; stages_.sweeps[k].reduces() && copy <= (parity_bytes_ ? 1 : 0); ++copy)
      b_.emit({.code = Do::OpenMailbox, .imm2 = mailboxes_at_[k] + copy * parity_bytes_});
  rows_done_ = b_.copy(zero_);
  turn_ = b_.copy(zero_);
  if (!one_row_a_team()) b_.emit({.code = Do::ClusterBarrier});
}

void RowLowering::meet(std::size_t sweep) {
  if (config_.cluster == 1) return b_.emit({.code = Do::Barrier});
  int count = static_cast<int>(stages_.sweeps[sweep].totals()) * config_.groups * config_.cluster;
  b_.emit({.code = Do::Receive,
           .type = *program_.compute,
           .a = parity_,
           .b = turn_,
           .imm2 = mailboxes_at_[sweep],
           .count = count});
}

// A team takes the rows of a block one after the other. A simd machine's one team takes all blocks.
void RowLowering::walk_blocks() {
  Reg first = b_.argument(0), last = b_.argument(1);
  if (config_.simd) {
    if (sums_.empty()) b_.slot({Slot::What::RowBlock});
    const bool plain = sums_.size() == 1 && !sums_[0].what->where.row.present;
    Reg row_block;
    if (plain) row_block = b_.slot({Slot::What::RowBlock});
    row_ = b_.copy(first);
    if (sums_.empty()) return walk_rows(last);
    Reg block;
    if (plain) block = b_.index(Do::IndexDivide, first, row_block);
    b_.note("a block of rows");
    b_.repeat_while_less(row_, last, [&] {
      Reg end;
      if (plain) {
        end = b_.index(Do::IndexMin, b_.add(row_, row_block), last);
        point_at_partials(sums_[0], block);
        begin_column_sums(sums_[0]);
      } else {
        end = last;
        const bool whole_blocks = sums_.size() == 1 && !sums_[0].what->where.row.wrap;
        for (ClassSums& each : sums_) end = begin_piece(each, end, whole_blocks);
      }
      walk_rows(end);
      for (const ClassSums& each : sums_) finish_column_sums(each);
      if (plain) b_.increase(block, 1);
    });
    return;
  }
  Reg block, end;
  if (by_entries()) {
    block = block_, end = block_end_;
  } else {
    Reg row_block = b_.slot({Slot::What::RowBlock, sums_.empty() ? 0 : sums_[0].number});
    block = b_.special(Do::BlockIndex);
    if (config_.teams > 1) block = b_.add(b_.mul(block, config_.teams), team_);
    row_ = b_.add(first, b_.index(Do::IndexMul, block, row_block));
    end = b_.index(Do::IndexMin, b_.add(row_, row_block), last);
    if (!sums_.empty()) block = b_.add(b_.index(Do::IndexDivide, first, row_block), block);
  }
  auto all_blocks = [&] { return by_entries() ? last : b_.slot({Slot::What::Blocks, sums_[0].number}); };
  if (in_teams()) {
    begin_entry();
  } else if (!sums_.empty()) {
    point_at_partials(sums_[0], block);
    Reg left;
    if (config_.teams > 1 && sums_[0].what->of_groups) left = b_.index(Do::IndexSub, all_blocks(), block);
    begin_column_sums(sums_[0], left);
  }
  walk_rows(end);
  if (sums_.empty()) return;
  if (config_.teams > 1)  // a team beyond the last block has nothing to write
    state_ = row_state(block, all_blocks());
  in_teams() ? finish_entry() : finish_column_sums(sums_[0]);
}

// Thread machines: blocks of entries with rows of their own, or all rows of an entry. Numbers beyond the last row, or
// the last block, have none.
void RowLowering::begin_block() {
  const ClassSums& sums = sums_[0];
  const AxisIndexing& row = sums.what->where.row;
  block_ = b_.special(Do::BlockIndex);
  if (config_.teams > 1) block_ = b_.add(b_.mul(block_, config_.teams), team_);
  block_ = b_.add(b_.argument(0), block_);
  Reg most;  // blocks of an entry, where a team takes one of them
  if (!in_teams()) most = b_.slot(SumNumber::MostBlocks, sums.number);
  const Reg total = b_.argument(2);
  entry_ = most ? b_.index(Do::IndexDivide, block_, most) : block_;
  if (config_.teams > 1)  // what is read of the entry exists
    entry_ = b_.index(Do::IndexMin, entry_, b_.add(b_.slot(SumNumber::Entries, sums.number), -1));
  Reg size, k, end;
  if (most) {
    size = by_entry(b_, SumNumber::RowBlock, sums.number, entry_);
    k = b_.index(Do::IndexMul, b_.index(Do::IndexRemainder, block_, most), size);
  }
  const Reg first = b_.mul(entry_, row.divide);
  if (!most) {
    row_ = b_.copy(first);
    end = b_.add(first, row.divide);
  } else if (!row.wrap) {
    row_ = b_.add(first, k);
    const Reg run_end = b_.add(first, row.divide);
    end = b_.index(Do::IndexMin, b_.add(row_, size), run_end);
  } else if (row.divide == 1) {
    row_step_ = row.wrap;
    row_ = b_.add(entry_, b_.mul(k, row_step_));
    end = b_.add(row_, b_.mul(size, row_step_));
  } else {
    const std::int64_t period = row.divide * row.wrap;
    auto place = [&](Reg k) {
      const Reg run = b_.index(Do::IndexDivide, k, row.divide);
      const Reg inside = b_.index(Do::IndexSub, k, b_.mul(run, row.divide));
      return std::pair(b_.add(b_.mul(run, period), first), inside);
    };
    auto [run, inside] = place(k);
    row_ = b_.add(run, inside);
    run_end_ = b_.add(run, row.divide);
    auto [last_run, last_inside] = place(b_.add(b_.add(k, size), -1));
    end = b_.add(b_.add(last_run, last_inside), 1);
  }
  block_end_ = b_.index(Do::IndexMin, end, total);
  if (config_.teams == 1) return;
  Reg blocks_left = b_.index(Do::IndexSub, b_.argument(1), block_);
  block_end_ = b_.index(Do::IndexMin, block_end_, b_.add(row_, b_.index(Do::IndexMul, blocks_left, total)));
}

// Does a block read the same entries of it for all of its rows? Those are loaded as weights are.
bool RowLowering::same_in_block(std::size_t k) const {
  const Spread& spread = program_.operands[k].spread;
  return by_entries() && spread.row.present && spread.row.divided() && !layout_.array(k).row_jumps &&
         axis_is(spread.row, sums_[0].what->where.row);
}

void RowLowering::walk_rows(Reg end) {
  if (overlap_) return walk_overlapping(end);
  if (config_.simd && config_.stripes && config_.rows == 2 && !layout_.jumps() && groups_.empty())
    return walk_pairs(end);
  int ahead = config_.ring - 1;
  Reg fill, filled_to;
  start_running_pointers();
  if (config_.ring) {
    // The ring's slot of the row at hand, and of the row `ahead` rows further on, as byte offsets.
    Reg base = b_.index(ring_at_);
    if (config_.teams > 1) base = b_.add(base, b_.mul(team_, ring_slot_bytes_ * config_.ring));
    ring_offset_ = b_.copy(base);
    fill = b_.copy(base);
    filled_to = base;
    Reg row = b_.copy(row_);
    for (int k = 0; k < ahead; ++k) {
      prefetch(row, end, fill);
      b_.increase(row, row_step_);
      b_.increase(fill, ring_slot_bytes_);
    }
  }
  auto advance = [&](Reg offset) {
    b_.increase(offset, ring_slot_bytes_);
    b_.when_less(
        offset, b_.add(filled_to, ring_slot_bytes_ * config_.ring), [] {}, [&] { b_.assign(offset, filled_to); });
  };
  auto body = [&] {
    if (config_.ring) {
      prefetch(b_.add(row_, ahead * row_step_), end, fill);
      advance(fill);
      b_.emit({.code = Do::CopyWait, .imm = ahead});
    }
    one_row();
    if (config_.ring) advance(ring_offset_);
    if (turn_) {
      b_.increase(rows_done_, 1);
      b_.emit({.code = Do::IndexAnd,
               .dst = turn_,
               .a = parity_ ? b_.index(Do::IndexShiftRight, rows_done_, 1) : rows_done_,
               .imm = 1});
    }
    if (parity_) b_.emit({.code = Do::IndexSub, .dst = parity_, .a = b_.index(parity_bytes_), .b = parity_});
    b_.increase(row_, row_step_);
    if (run_end_) {
      const AxisIndexing& row = sums_[0].what->where.row;
      b_.when_less(
          row_, run_end_, [] {},
          [&] {
            b_.increase(row_, row.divide * (row.wrap - 1));
            b_.increase(run_end_, row.divide * row.wrap);
          });
    }
    if (in_teams()) finish_block(end);
    advance_pointers();
  };
  b_.note("a row");
  if (config_.simd || config_.teams == 1) {
    one_row_a_team() ? body() : b_.repeat_while_less(row_, end, body);
    return;
  }
  // Teams of one warp shuffle together, so they keep step: a team without a row works on nothing.
  const int number = sums_.empty() ? 0 : sums_[0].number;
  Reg turn = b_.copy(zero_), turns = in_teams()
                                         ? b_.index(Do::IndexMin, b_.argument(2), sums_[0].what->where.row.divide)
                                     : by_entries() ? b_.slot(SumNumber::LargestBlock, number)
                                                    : b_.slot({Slot::What::RowBlock, number});
  auto turn_of_all = [&] {
    state_ = row_state(row_, end);
    body();
    b_.increase(turn, 1);
  };
  one_row_a_team() ? turn_of_all() : b_.repeat_while_less(turn, turns, turn_of_all);
}

RowState RowLowering::row_state(Reg row, Reg end) {
  RowState state{.exists = b_.below(row, 0, end), .left = b_.index(Do::IndexSub, end, row)};
  const std::int64_t last = (std::min(config_.stripe(), chunks() * chunk_columns()) - 1) / chunk_columns();
  const bool partial = !always_inside((config_.stripes - 1) * stripe_step() + last * chunk_columns());
  if (partial) state.limit = b_.index(Do::IndexMin, columns_, b_.index(Do::IndexMul, state.left, columns_));
  return state;
}

// Starts the copies of a row's elements into the ring; a thread copies just what it will read itself, so that no
// barrier is needed.
void RowLowering::prefetch(Reg row, Reg end, Reg ring_offset) {
  RowState state = row_state(row, end);
  for (std::size_t k = 0; k < program_.operands.size(); ++k) {
    if (!in_ring(k)) continue;
    std::int64_t size = static_cast<std::int64_t>(bytes(*program_.operands[k].type));
    const Running& ahead = running_ahead_.at(k);
    Reg pointer = ahead.pointer;
    Reg target = b_.add(ring_offset, b_.mul(block_column_, size));
    for (int stripe = 0; stripe < config_.stripes; ++stripe)
      for (int c = 0; c < chunks(); ++c) {
        Leaf leaf = unrolled_leaf(stripe, c, state);
        if (leaf.id < 0) continue;
        b_.emit({.code = Do::CopyAsync,
                 .type = *program_.operands[k].type,
                 .a = pointer,
                 .b = points_at_column(k) ? Reg{} : thread_column_,
                 .c = leaf.mask,
                 .d = target,
                 .imm = leaf.offset * size,
                 .imm2 = ring_operands_.at(k) + leaf.offset * size,
                 .count = config_.vector});
      }
    advance_pointers(ahead);
  }
  b_.emit({.code = Do::CopyCommit});
}

// As the ring, once for all rows. These copies end before the first row's do.
void RowLowering::stage_columns() {
  for (const auto& [k, at] : staged_operands_) {
    std::int64_t size = static_cast<std::int64_t>(bytes(*program_.operands[k].type));
    Reg target = b_.mul(block_column_, size);
    for (int stripe = 0; stripe < config_.stripes; ++stripe)
      for (int c = 0; c < chunks(); ++c) {
        Leaf leaf = unrolled_leaf(stripe, c, {.limit = columns_});
        if (leaf.id < 0) continue;
        b_.emit({.code = Do::CopyAsync,
                 .type = *program_.operands[k].type,
                 .a = column_pointers_.at(k),
                 .b = thread_column_,
                 .c = leaf.mask,
                 .d = target,
                 .imm = leaf.offset * size,
                 .imm2 = at + leaf.offset * size,
                 .count = config_.vector});
      }
  }
  b_.emit({.code = Do::CopyCommit});
}

void RowLowering::advance_pointers() {
  for (std::size_t k = 0; k < program_.array_count(); ++k)
    if (auto it = running_.find(k); it != running_.end()) advance_pointers(it->second);
}

void RowLowering::begin_row() {
  row_values_.clear();
  row_pointers_.clear();
  mapped_rows_.clear();
  distances_.clear();
  picks_.clear();
  drawn_rows_.clear();
  if (run_end_ || row_step_ > 1) row_jumps_.clear();
  for (auto& leaf : row_leaves_) leaf.clear();
  // Pointers are wanted before any loop, whose body may not run; rows that overlap have them already.
  for (NodeId id = 0; id < program_.size(); ++id)
    if (!overlap_ && used_[id] && program_[id].op == Op::Operand &&
        program_.operands[program_[id].payload].spread.row.present)
      row_pointer(program_[id].payload);
  for (std::size_t r = 0; r < program_.results.size(); ++r)
    if (!overlap_ && writes(r)) row_pointer(program_.array_of_result(r));
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && program_[id].op == Op::Random)
      if (const std::int64_t first = first_place(program_, program_[id]).row; first && !drawn_rows_.contains(first))
        drawn_rows_[first] = b_.add(row_, first);
  next_rows_.clear();
  for (std::size_t k = 0; config_.prefetch && k < program_.operands.size(); ++k) {
    const Spread& spread = program_.operands[k].spread;
    if (!running_.contains(k) || !spread.plain() || !spread.column.present) continue;
    const Running& row = running_.at(k);
    // Short rows take less time than a line does: three rows on, or pairs of rows (512x32x128 with outer axes swapped,
    // rms_norm backward f32 on AVX2: 4.8 times the contiguous one with one row, 2.8 with two, 1.6 with three).
    const std::int64_t ahead = config_.stripes ? 3 * config_.rows : 1;
    next_rows_.emplace_back(k, b_.pointer(row.pointer, row.stride_bytes, ahead));
  }
}

void RowLowering::one_row() {
  begin_row();
  for (std::size_t k = 0; k < stages_.sweeps.size(); ++k) {
    sweep(k);
    sum_apart(k);
    sum_groups(k);
    store_by_entries(k);
  }
  store_rows();
  if (!config_.simd && !config_.stripes) b_.emit({.code = Do::Barrier});  // scratch is written again by the next row
}

void RowLowering::store_rows() {
  evaluate_row(work_.back().row);
  for (std::size_t r : stages_.row_stores) {
    const Output& result = program_.results[r];
    const std::size_t array = program_.array_of_result(r);
    const Reg pointer = row_pointer(array), value = one(result.value);
    auto store = [&](Reg inside) { store_by_owner(*result.type, pointer, value, inside); };
    result.spread.row.picked() ? store_picked(array, store) : store({});
  }
  for (std::size_t r : stages_.row_sums) add_to_rows(r);
  for (const Stage& stage : stages_.sweeps)
    for (std::size_t r : stage.stores) store_empty_groups(r);
}

// The thread that has the row's first column.
void RowLowering::store_by_owner(Type type, Reg pointer, Reg value, Reg mask) {
  Instr store{.code = Do::StoreOne, .type = type, .a = pointer, .values = {value}};
  if (!config_.simd)
    store.c = both(b_.below(row_owner_, 0, state_.exists ? b_.index(Do::IndexMin, state_.left, 1) : one_index_), mask);
  b_.emit(std::move(store));
}

// Does this kernel write the result's rows?
bool RowLowering::writes(std::size_t result) const {
  const Output& output = program_.results[result];
  return output.value != no_node && (!is_column_reduction(program_[output.value].op) || sums_own_row(program_, output));
}

}  // namespace trireme
