// Where the rows of arrays lie: pointers that move on from row to row.
#include "schedule/row_lowering.hpp"

namespace trireme {

// Pointers to the first row of a block; each row moves them on, which costs an addition instead of a multiplication.
void RowLowering::start_running_pointers() {
  running_.clear();
  running_ahead_.clear();
  auto start = [&](std::size_t array) {
    const Program::Array what = program_.array(array);
    const int jumps = layout_.array(array).row_jumps;
    if (!what.spread.row.present || !what.spread.row.plain() || !runs_on(jumps)) return;
    const auto size = static_cast<std::int64_t>(bytes(*what.type));
    Reg first = row_pointer(array);
    if (points_at_column(array)) first = b_.pointer(first, thread_column_, size);
    Reg stride = b_.slot_of(array, Slot::What::Stride);
    Running running{b_.fresh(Bank::Pointer), b_.mul(stride, size * row_step_), {}};
    for (int j = 0; j < jumps; ++j) {
      RowJump jump = row_jump(array, j);
      running.jumps.push_back({b_.index(Do::IndexSub, row_, b_.index(Do::IndexMul, jump.turn, jump.every)), jump.every,
                               b_.mul(jump.elements, size)});
    }
    b_.emit({.code = Do::PointerAdd, .dst = running.pointer, .a = first, .b = zero_, .imm = 1});
    running_[array] = running;
    if (!what.result && in_ring(array)) running_ahead_[array] = copy_of(running);
  };
  row_pointers_.clear();
  mapped_rows_.clear();
  distances_.clear();
  forget_places();
  row_jumps_.clear();
  for (std::size_t k : used_operands()) start(k);
  for (std::size_t r = 0; r < program_.results.size(); ++r)
    if (writes(r)) start(program_.array_of_result(r));
  row_pointers_.clear();
}

RowLowering::Running RowLowering::copy_of(const Running& running) {
  Running copy = running;
  copy.pointer = b_.pointer(running.pointer, zero_, 1);
  for (Running::Jump& jump : copy.jumps) jump.row = b_.copy(jump.row);
  return copy;
}

// Rows that lie in pieces, and jumps that fall between rows of a block, are places of their own.
bool RowLowering::runs_on(int jumps) const { return !run_end_ && (row_step_ == 1 || jumps == 0); }

// Threads stay at their columns: running pointers to arrays per element may contain them. Rotations and comparisons of
// integers look at columns in their own way.
bool RowLowering::points_at_column(std::size_t array) const {
  if (config_.simd || !config_.stripes || reads_other_columns_) return false;
  const Spread& spread = program_.array(array).spread;
  const ArrayLayout layout = layout_.array(array);
  bool strided = layout.strided || !runs_on(layout.row_jumps);
  return spread.plain() && spread.row.present && spread.column.present && !strided;
}

Reg RowLowering::row_pointer(std::size_t array) {
  if (auto it = column_pointers_.find(array); it != column_pointers_.end()) return it->second;
  if (auto it = running_.find(array); it != running_.end()) return it->second.pointer;
  if (auto it = row_pointers_.find(array); it != row_pointers_.end()) return it->second;
  const Program::Array what = program_.array(array);
  Reg base = b_.pointer_to(array);
  Reg stride = b_.slot_of(array, Slot::What::Stride);
  const Reg row = what.spread.row.picked() ? picked_row(array) : mapped_row(what.spread.row);
  Reg place = b_.index(Do::IndexMul, row, stride);
  for (int j = 0; j < layout_.array(array).row_jumps; ++j) {
    RowJump jump = row_jump(array, j);
    place = b_.add(place, b_.index(Do::IndexMul, jump.turn, jump.elements));
  }
  return row_pointers_[array] = b_.pointer(base, place, static_cast<std::int64_t>(bytes(*what.type)));
}

// Divided or wrapped rows are one axis and do not jump.
RowLowering::RowJump RowLowering::row_jump(std::size_t array, int jump) {
  auto [it, is_new] = row_jumps_.try_emplace({array, jump});
  if (!is_new) return it->second;
  Reg every = b_.slot_of(array, Slot::What::Every, jump);
  Reg elements = b_.slot_of(array, Slot::What::Jump, jump);
  return it->second = {every, elements, b_.index(Do::IndexDivide, row_, every)};
}

void RowLowering::advance_pointers(const Running& running) {
  auto add = [&](Reg bytes) {
    b_.emit({.code = Do::PointerAdd, .dst = running.pointer, .a = running.pointer, .b = bytes, .imm = 1});
  };
  add(running.stride_bytes);
  for (const Running::Jump& jump : running.jumps) {
    b_.increase(jump.row, 1);
    b_.when_less(
        jump.row, jump.every, [] {},
        [&] {
          add(jump.bytes);
          b_.assign(jump.row, zero_);
        });
  }
}

}  // namespace trireme
