#include "schedule/across.hpp"

#include <algorithm>

#include "schedule/across_lowering.hpp"

namespace trireme {

// What has to be evaluated for `roots`, arguments first; not what is in scratch already.
std::vector<NodeId> AcrossLowering::needed(const std::vector<NodeId>& roots) const {
  std::vector<bool> wanted(program_.size());
  std::vector<NodeId> open = roots, nodes;
  while (!open.empty()) {
    NodeId id = open.back();
    open.pop_back();
    if (wanted[id] || level(id) == Level::Whole) continue;
    wanted[id] = true;
    if (is_row_reduction(program_[id].op) || placed_.contains(id)) continue;
    for (NodeId arg : program_[id]) open.push_back(arg);
  }
  for (NodeId id = 0; id < program_.size(); ++id)
    if (wanted[id]) nodes.push_back(id);
  return nodes;
}

// The values per row that elements among `nodes` ask for.
std::vector<NodeId> AcrossLowering::rows_for(const std::vector<NodeId>& nodes) const {
  std::set<NodeId> rows;
  for (NodeId id : nodes)
    if (per_element(id))
      for (NodeId arg : program_[id])
        if (level(arg) == Level::Row && !per_element(arg)) rows.insert(arg);
  return {rows.begin(), rows.end()};
}

std::vector<NodeId> AcrossLowering::roots_of(const Stage& stage) const {
  std::vector<NodeId> roots;
  for (NodeId id : stage.reductions) roots.push_back(program_[id].args[0]);
  return roots;
}

// Of the last sweep: what is stored per element, and what is summed over rows.
std::vector<NodeId> AcrossLowering::terms() const {
  std::vector<NodeId> values;
  for (const Output& result : program_.results)
    if (result.spread.column.present)
      values.push_back(result.spread.row.present ? result.value : program_[result.value].args[0]);
  return values;
}

void AcrossLowering::run() {
  zero_ = b_.index(0);
  one_ = b_.index(1);
  columns_ = b_.slot({Slot::What::Columns});
  last_column_ = b_.add(columns_, -1);
  stripes_ = b_.index(Do::IndexShiftRight, b_.add(columns_, contract::stripe - 1),
                      std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  std::vector<bool> read = read_operands(program_);
  for (std::size_t k = 0; k < program_.operands.size(); ++k)
    if (read[k] && !program_.operands[k].constant) arrays_.push_back(k);
  for (std::size_t r = 0; r < program_.results.size(); ++r)
    if (program_.results[r].spread.row.present) arrays_.push_back(program_.array_of_result(r));
  for (std::size_t array : arrays_) {
    if (!spread_of(array).row.present) bases_[array] = b_.pointer_to(array);
    if (layout_of(array).strided) steps_[array] = column_steps(b_, layout_of(array), array);
  }
  lay_out_scratch();
  b_.note("values of the whole kernel");
  evaluate_whole();
  walk();
}

// Partial sums of a stripe, values per row, then sums of stripes, of which there are as many as the row has.
void AcrossLowering::lay_out_scratch() {
  std::size_t most = 0;
  std::vector<NodeId> rows;
  auto add = [&](const std::vector<NodeId>& more) { rows.insert(rows.end(), more.begin(), more.end()); };
  for (const Stage& stage : stages_.sweeps) {
    most = std::max(most, stage.reductions.size());
    add(stage.reductions);
    add(rows_for(needed(roots_of(stage))));
  }
  add(rows_for(needed(terms())));
  std::int64_t at = partials_of(most);
  for (NodeId id : rows)
    if (places_.try_emplace(id, at).second) at += bytes_of(most_turns_);
  tiles_at_ = at;
  at = tile_of(stages_.column_results.size());
  totals_at_ = at;
  const std::int64_t totals = static_cast<std::int64_t>(most) * bytes_of(most_turns_);
  b_.kernel().scratch_bytes = totals_at_ + totals;
  b_.kernel().scratch_bytes_per_stripe = totals;
  if (b_.kernel().scratch_bytes > 0) b_.slot_number({Slot::What::Pointer, scratch_array});
}

void AcrossLowering::evaluate_whole() {
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && level(id) == Level::Whole && !is_column_reduction(program_[id].op))
      whole_[id] = names_.say(b_, id, evaluate(id, whole_, nullptr));
}

// Where a row begins; `rows` becomes as many as there are before a stride ends.
Reg AcrossLowering::first_entry(std::size_t array, Reg row, Reg* rows) {
  Reg place = row;
  for (int j = 0; j < layout_of(array).row_jumps; ++j) {
    Reg every = b_.slot_of(array, Slot::What::Every, j);
    Reg jump = b_.slot_of(array, Slot::What::Jump, j);
    Reg jumps = b_.index(Do::IndexDivide, row, every);
    place = b_.add(place, b_.index(Do::IndexMul, jumps, jump));
    if (!rows) continue;
    Reg past = b_.index(Do::IndexSub, row, b_.index(Do::IndexMul, jumps, every));
    *rows = b_.index(Do::IndexMin, *rows, b_.index(Do::IndexSub, every, past));
  }
  Reg base = b_.pointer_to(array);
  return b_.pointer(base, place, static_cast<std::int64_t>(bytes(type_of(array))));
}

// A turn ends where a stride of rows does.
void AcrossLowering::walk() {
  turn_ = b_.copy(b_.argument(0));
  Reg last = b_.argument(1), whole = b_.index(rows_of(most_turns_) - 1);
  b_.repeat_while_less(turn_, last, [&] {
    Reg rows = b_.index(Do::IndexMin, b_.index(Do::IndexSub, last, turn_), rows_of(most_turns_));
    for (std::size_t array : arrays_)
      if (spread_of(array).row.present) bases_[array] = first_entry(array, turn_, &rows);
    if (!stages_.column_results.empty()) {  // a register's rows are one block's: it begins at a multiple of its lanes
      Reg past = b_.index(Do::IndexAnd, turn_, config_.lanes - 1), aligned = b_.copy(rows);
      b_.when_less(zero_, past, [&] {
        Reg up_to = b_.index(Do::IndexSub, b_.index(config_.lanes), past);
        b_.emit({.code = Do::IndexMin, .dst = aligned, .a = aligned, .b = up_to});
      });
      rows = aligned;
    }
    rows_ = b_.copy(rows);
    b_.when_less(
        whole, rows,
        [&] {
          Reg next = b_.add(turn_, rows);
          for (std::size_t array : arrays_)
            if (config_.overlap && !is_result(array) && spread_of(array).row.present)
              next_[array] = first_entry(array, next, nullptr);
          turn(most_turns_);
        },
        [&] {
          b_.emit({.code = Do::IndexMin, .dst = rows_, .a = rows_, .imm = rows_of(last_turns_)});
          turn(last_turns_);
        });
    b_.emit({.code = Do::IndexAdd, .dst = turn_, .a = turn_, .b = rows_});
  });
}

void AcrossLowering::turn(const Turn& turn) {
  b_.note(turn.whole ? "a turn: lanes are rows" : "a turn of the rows left over");
  at_hand_ = turn;
  mask_ = turn.whole ? Reg{} : b_.below(zero_, 0, rows_);
  placed_.clear();
  for (const Stage& stage : stages_.sweeps)
    if (!stage.reductions.empty()) reduce(stage);
  if (std::vector<NodeId> values = terms(); !values.empty()) store_elements(values);
  store_rows();
}

Reg AcrossLowering::value(NodeId id, Known& known, const Column* column) {
  if (level(id) == Level::Whole) return whole_.at(id);
  if (level(id) == Level::Column) return column->values.at(id);
  if (auto it = known.find(id); it != known.end()) return it->second;
  return known[id] =
             placed_.contains(id) ? load_scratch(places_.at(id)) : names_.say(b_, id, evaluate(id, known, column));
}

Reg AcrossLowering::evaluate(NodeId id, Known& known, const Column* column) {
  const Node& node = program_[id];
  switch (node.op) {
    case Op::ColumnIndex: return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = column->index});
    case Op::RowIndex: return b_.into(Bank::Lane, {.code = Do::LaneColumn, .a = b_.add(turn_, row_)});
    case Op::Operand: {
      const auto array = static_cast<std::size_t>(node.payload);
      const Spread& spread = spread_of(array);
      Reg at = spread.column.present ? column->entries.at(array) : bases_.at(array);
      if (!spread.row.present) return b_.into(Bank::Lane, {.code = Do::LoadOne, .type = type_of(array), .a = at});
      if (column && column->ahead.contains(array))
        b_.emit({.code = Do::Prefetch, .type = type_of(array), .a = column->ahead.at(array), .b = row_});
      Reg loaded = b_.fresh(Bank::Lane);
      b_.emit({.code = Do::Load, .type = type_of(array), .a = at, .b = row_, .c = mask_, .values = {loaded}});
      return loaded;
    }
    default: {
      Reg args[3];
      for (int k = 0; k < node.arity; ++k) args[k] = value(node.args[k], known, column);
      return plain_value(b_, program_, node, columns_, args[0], args[1], args[2]);
    }
  }
}

Reg AcrossLowering::entry(std::size_t array, Reg first, Reg column) {
  auto steps = steps_.find(array);
  Reg place = steps == steps_.end() ? column : stepped(b_, steps->second, column);
  return b_.pointer(first, place, static_cast<std::int64_t>(bytes(type_of(array))));
}

AcrossLowering::Column AcrossLowering::column_at(Reg index, Reg exists, const std::vector<NodeId>& nodes) {
  Column column{.index = index, .exists = exists, .entries = {}, .ahead = {}, .values = {}};
  for (NodeId id : nodes) {
    if (program_[id].op != Op::Operand || !program_[id].by_column) continue;
    const auto array = static_cast<std::size_t>(program_[id].payload);
    column.entries[array] = entry(array, bases_.at(array), index);
  }
  for (NodeId id : nodes)
    if (level(id) == Level::Column) column.values[id] = names_.say(b_, id, evaluate(id, column.values, &column));
  return column;
}

// Loads of a column fetch another one's lines, too.
void AcrossLowering::fetch(Column& column, Reg index, const std::map<std::size_t, Reg>& rows) {
  for (const auto& [array, here] : column.entries)
    if (at_hand_.whole && !is_result(array) && spread_of(array).row.present)
      column.ahead[array] = entry(array, rows.at(array), index);
}

// Brings what elements want of their rows into scratch.
void AcrossLowering::evaluate_rows(const std::vector<NodeId>& nodes) {
  std::vector<NodeId> rows = rows_for(nodes);
  std::erase_if(rows, [&](NodeId id) { return placed_.contains(id); });
  if (rows.empty()) return;
  each_register([&] {
    Known known;
    for (NodeId id : needed(rows)) value(id, known, nullptr);
    for (NodeId id : rows) store_scratch(places_.at(id), known.at(id));
  });
  placed_.insert(rows.begin(), rows.end());
}

bool goes_across(const Program& program) {
  bool elements = false, sums = false, maxima = false;
  for (const Output& result : program.results) {
    const bool sum = is_column_reduction(program[result.value].op);
    if (!result.spread.plain() || (sum ? !result.spread.column.present : !result.spread.row.present)) return false;
    elements |= result.spread.column.present && result.spread.row.present;
    sums |= program[result.value].op == Op::ColumnSum;
    maxima |= program[result.value].op == Op::ColumnMax;
  }
  if (sums && maxima) return false;  // partials of one class
  for (const Operand& operand : program.operands) {
    if (operand.constant) continue;
    if (!operand.spread.plain()) return false;
    elements |= operand.spread.row.present && operand.spread.column.present;
  }
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && !is_plain_value(program, program[id])) return false;
  return elements;
}

void lower_across(const Program& program, const Config& config, Kernel& kernel) {
  AcrossLowering(program, config, kernel).run();
}

}  // namespace trireme
