// Two rows at once, on simd machines. In loops a row's last sweep, which stores, goes along with the next row's last
// but one, which computes. Otherwise one core computes while memory waits, then waits while memory takes what it
// stored.
#include <algorithm>
#include <utility>

#include "ir/groups.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {
namespace {

bool contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

}  // namespace

// The last sweep must need nothing of its row but numbers, operands and what the sweep before it kept, at the columns
// at hand.
bool RowLowering::can_overlap() const {
  std::size_t count = stages_.sweeps.size();
  if (!config_.simd || config_.stripes || count < 2 || stages_.sweeps.back().reduces()) return false;
  if (layout_.strided() || maps_columns(program_) || stages_.sums_groups()) return false;
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && spans_chunks(id)) return false;
  for (std::size_t k : used_operands())
    if (program_.operands[k].spread.row.present && !program_.operands[k].spread.row.plain()) return false;
  for (const Output& result : program_.results)
    if (result.spread.row.picked() || is_of_groups(result.spread)) return false;
  if (has(program_, Op::Random)) return false;  // which is drawn for the row at hand
  for (NodeId id : work_[count - 1].row)
    if (is_condition(program_[id].op)) return false;
  return std::none_of(kept_.begin(), kept_.end(), [&](const Kept& each) {
    return each.sweep + 2 < count && contains(work_[count - 1].chunk, each.id);
  });
}

// The trail has pointers to what its sweep touches; the lead keeps those that other sweeps need.
void RowLowering::start_trail() {
  trail_ = {};
  const std::size_t last = stages_.sweeps.size() - 1;
  auto read_by = [&](std::size_t operand, const std::vector<NodeId>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      return program_[id].op == Op::Operand && program_[id].payload == static_cast<std::int64_t>(operand);
    });
  };
  for (std::size_t k : used_operands()) {
    if (!running_.contains(k)) continue;
    bool lead = false;
    for (std::size_t sweep = 0; sweep < work_.size(); ++sweep)
      lead |= read_by(k, work_[sweep].row) || (sweep != last && read_by(k, work_[sweep].chunk));
    if (!read_by(k, work_[last].chunk)) continue;
    trail_.running[k] = lead ? copy_of(running_.at(k)) : running_.at(k);
    if (!lead) running_.erase(k);
  }
  for (std::size_t r : stages_.sweeps[last].stores) {
    const std::size_t array = program_.array_of_result(r);
    trail_.running[array] = running_.at(array);
    running_.erase(array);
  }
}

template <typename Body>
void RowLowering::in_trail(Body&& body) {
  auto exchange = [&] {
    std::swap(row_values_, trail_.row_values);
    std::swap(loop_values_, trail_.loop_values);
    std::swap(running_, trail_.running);
  };
  exchange();
  body();
  exchange();
}

// All that is read comes before all that is written: a store holds up loads from the same place in another page.
void RowLowering::visit_both(const Leaf& leaf) {
  const std::size_t last = stages_.sweeps.size() - 1;
  in_trail([&] {
    loop_values_.clear();
    evaluate(last, leaf);
  });
  for (const auto& [id, values] : trail_.loop_values)
    if (!varies_by_row(id)) loop_values_.put(id, values);
  evaluate(last - 1, leaf);
  finish(last - 1, leaf);
  in_trail([&] { finish(last, leaf); });
}

// What the last sweep wants of the row, into registers that outlast the next row's.
void RowLowering::hand_over() {
  const std::size_t last = stages_.sweeps.size() - 1;
  evaluate_row(work_[last].row);
  store_rows();
  auto wanted = [&](NodeId row_value) {
    auto takes = [&](NodeId id) {
      return std::find(program_[id].begin(), program_[id].end(), row_value) != program_[id].end();
    };
    auto stores = [&](std::size_t r) { return program_.results[r].value == row_value; };
    auto sums = [&](std::size_t r) { return takes(program_.results[r].value); };
    const std::vector<NodeId>& nodes = work_[last].chunk;
    const Stage& sweep = stages_.sweeps[last];
    return std::any_of(nodes.begin(), nodes.end(), takes) ||
           std::any_of(sweep.stores.begin(), sweep.stores.end(), stores) ||
           std::any_of(sweep.columns.begin(), sweep.columns.end(), sums);
  };
  for (NodeId id : work_[last].row) {
    if (!wanted(id)) continue;
    auto [it, is_new] = trail_.row_values.try_emplace(id);
    if (is_new) it->second = b_.fresh(Bank::Lane);
    b_.assign(it->second, one(id));
  }
}

// All sweeps of the lead but the last; the trail's last one with the last of them.
void RowLowering::lead() {
  begin_row();
  for (std::size_t k = 0; config_.prefetch && k < program_.operands.size(); ++k)
    if (auto it = trail_.running.find(k); it != trail_.running.end() && !running_.contains(k))
      next_rows_.emplace_back(k, b_.pointer(it->second.pointer, it->second.stride_bytes, 1));
  for (std::size_t k = 0; k + 1 < stages_.sweeps.size(); ++k) sweep(k);
  hand_over();
  advance_pointers();
  b_.increase(row_, 1);
}

void RowLowering::walk_overlapping(Reg end) {
  start_running_pointers();
  start_trail();
  trailing_ = false;
  b_.when_less(row_, end, [&] {
    b_.note("the first row");
    seldom_ = true;
    lead();
    trailing_ = true;
    seldom_ = false;
    b_.note("a row, and the one before it");
    b_.repeat_while_less(row_, end, [&] {
      lead();
      in_trail([&] { advance_pointers(); });
    });
    trailing_ = false;
    b_.note("the last row");
    seldom_ = true;
    in_trail([&] { sweep_in_loops(stages_.sweeps.size() - 1); });
    seldom_ = false;
  });
}

// Unrolled rows are short, and each waits for its own sums: two of them, instruction by instruction in turn, fill each
// other's waits. Column sums take the first row's part first, as both do the same.
void RowLowering::walk_pairs(Reg end) {
  start_running_pointers();
  b_.note("two rows");
  b_.repeat_while_less(row_, b_.index(Do::IndexSub, end, one_index_), [&] {
    std::vector<Instr> first = b_.recorded([&] { one_row(); });
    auto running = running_;
    Reg row = std::exchange(row_, b_.add(row_, 1));
    for (std::size_t k = 0; k < program_.array_count(); ++k)
      if (auto it = running_.find(k); it != running_.end())
        it->second.pointer = b_.pointer(it->second.pointer, it->second.stride_bytes, 1);
    std::vector<Instr> second = b_.recorded([&] { one_row(); });
    const bool in_turn = first.size() == second.size();
    for (std::size_t k = 0; k < first.size(); ++k) {
      b_.emit(std::move(first[k]));
      if (in_turn) b_.emit(std::move(second[k]));
    }
    for (std::size_t k = 0; !in_turn && k < second.size(); ++k) b_.emit(std::move(second[k]));
    running_ = std::move(running);
    row_ = row;
    advance_pointers();
    advance_pointers();
    b_.increase(row_, 2);
  });
  b_.note("one is left");
  b_.when_less(row_, end, [&] {
    one_row();
    b_.increase(row_, 1);
  });
}

}  // namespace trireme
