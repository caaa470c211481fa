// Where the rows of arrays lie: pointers that move on from row to row.
#include "schedule/row_lowering.hpp"

namespace trireme {

// Pointers to the first row of a block; each row moves them on, which costs an addition instead of a multiplication.
void RowLowering::start_running_pointers() {
  running_operands_.clear();
  running_results_.clear();
  running_ahead_.clear();
  auto start = [&](std::size_t index, bool result) {
    const Spread& spread = result ? program_.results[index].spread : program_.operands[index].spread;
    const int jumps = (result ? layout_.result(index) : layout_.operand(index)).row_jumps;
    if (!spread.row.present || !spread.row.plain() || !runs_on(jumps)) return;
    Type type = result ? *program_.results[index].type : *program_.operands[index].type;
    Reg first = row_pointer(index, result);
    if (points_at_column(index, result))
      first = b_.pointer(first, thread_column_, static_cast<std::int64_t>(bytes(type)));
    Reg stride = b_.slot({result ? Slot::Kind::ResultStride : Slot::Kind::OperandStride, static_cast<int>(index)});
    auto size = static_cast<std::int64_t>(bytes(type));
    Running running{b_.fresh(Bank::Pointer), b_.mul(stride, size * row_step_), {}};
    for (int j = 0; j < jumps; ++j) {
      RowJump jump = row_jump(index, result, j);
      running.jumps.push_back({b_.index(Do::IndexSub, row_, b_.index(Do::IndexMul, jump.turn, jump.every)), jump.every,
                               b_.mul(jump.elements, size)});
    }
    b_.emit({.code = Do::PointerAdd, .dst = running.pointer, .a = first, .b = zero_, .imm = 1});
    (result ? running_results_ : running_operands_)[index] = running;
    if (!result && in_ring(index)) running_ahead_[index] = copy_of(running);
  };
  operand_rows_.clear();
  result_rows_.clear();
  mapped_rows_.clear();
  row_jumps_.clear();
  for (std::size_t k : used_operands()) start(k, false);
  for (std::size_t r = 0; r < program_.results.size(); ++r)
    if (writes(r)) start(r, true);
  operand_rows_.clear();
  result_rows_.clear();
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
bool RowLowering::points_at_column(std::size_t index, bool result) const {
  if (config_.simd || !config_.stripes || looks_elsewhere_) return false;
  const Spread& spread = result ? program_.results[index].spread : program_.operands[index].spread;
  const ArrayLayout layout = result ? layout_.result(index) : layout_.operand(index);
  bool strided = layout.strided || !runs_on(layout.row_jumps);
  return spread.plain() && spread.row.present && spread.column.present && !strided;
}

Reg RowLowering::row_pointer(std::size_t index, bool result) {
  if (auto it = column_pointers_.find(index); !result && it != column_pointers_.end()) return it->second;
  auto& running = result ? running_results_ : running_operands_;
  if (auto it = running.find(index); it != running.end()) return it->second.pointer;
  auto& known = result ? result_rows_ : operand_rows_;
  if (auto it = known.find(index); it != known.end()) return it->second;
  int k = static_cast<int>(index);
  Type type = result ? *program_.results[index].type : *program_.operands[index].type;
  Reg base = b_.pointer({result ? Slot::Kind::ResultPointer : Slot::Kind::OperandPointer, k});
  Reg stride = b_.slot({result ? Slot::Kind::ResultStride : Slot::Kind::OperandStride, k});
  const Spread& spread = result ? program_.results[index].spread : program_.operands[index].spread;
  Reg place = b_.index(Do::IndexMul, mapped_row(spread.row), stride);
  int jumps = (result ? layout_.result(index) : layout_.operand(index)).row_jumps;
  for (int j = 0; j < jumps; ++j) {
    RowJump jump = row_jump(index, result, j);
    place = b_.add(place, b_.index(Do::IndexMul, jump.turn, jump.elements));
  }
  return known[index] = b_.pointer(base, place, static_cast<std::int64_t>(bytes(type)));
}

// Divided or wrapped rows are one axis and do not jump.
RowLowering::RowJump RowLowering::row_jump(std::size_t index, bool result, int jump) {
  auto [it, is_new] = row_jumps_.try_emplace({index, result, jump});
  if (!is_new) return it->second;
  int k = static_cast<int>(index);
  Reg every = b_.slot({result ? Slot::Kind::ResultEvery : Slot::Kind::OperandEvery, k, jump});
  Reg elements = b_.slot({result ? Slot::Kind::ResultJump : Slot::Kind::OperandJump, k, jump});
  return it->second = {every, elements, b_.index(Do::IndexDivide, row_, every)};
}

void RowLowering::move_on(const Running& running) {
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
