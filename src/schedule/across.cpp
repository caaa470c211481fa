#include "schedule/across.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "ir/contract.hpp"
#include "ir/integers.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {
namespace {

// A *turn* takes some registers' worth of rows through all sweeps. A sweep goes from column to column, and at each from
// register to register: neighbours in memory. Values per row wait in scratch, one number a row of the turn.
class AcrossLowering {
 public:
  AcrossLowering(const Program& program, const Config& config, Kernel& kernel)
      : program_(program),
        config_(config),
        stages_(split_into_stages(program, std::vector<bool>(program.results.size(), true))),  // stores come last
        used_(reachable(program)),
        varies_(varying_by_row(program)),
        b_(kernel),
        most_turns_{config.rows, config.unroll, true} {}
  void run();

 private:
  // Most turns take `config.rows` registers. Rows that are left over take one each, with a mask and in short code.
  struct Turn {
    int registers, leaves;  // leaves: columns that become one partial sum
    bool whole;             // all rows exist
  };
  struct ArrayKey {
    std::size_t index;
    bool result;
    auto operator<=>(const ArrayKey&) const = default;
  };
  struct Column {
    Reg index, exists;                // exists: Mask; none: it does
    std::map<ArrayKey, Reg> entries;  // pointers: of arrays per element to the turn's first row
    std::map<ArrayKey, Reg> ahead;    // the same, of a column to come
    std::map<NodeId, Reg> values;     // the same in every row
  };
  using Known = std::map<NodeId, Reg>;
  enum class Level { Whole, Column, Row, Element };

  Level level(NodeId id) const {
    if (program_[id].by_column) return varies_[id] ? Level::Element : Level::Column;
    return varies_[id] ? Level::Row : Level::Whole;
  }
  // Conditions do not fit scratch: those per row are made again for every element.
  bool per_element(NodeId id) const {
    return level(id) == Level::Element || (level(id) == Level::Row && is_condition(program_[id].op));
  }
  std::vector<NodeId> needed(const std::vector<NodeId>& roots) const;
  std::vector<NodeId> rows_for(const std::vector<NodeId>& nodes) const;
  std::vector<NodeId> roots_of(const Stage& stage) const;
  std::vector<NodeId> stored_elements() const;

  void lay_out_scratch();
  void evaluate_whole();
  void walk();
  void turn(const Turn& turn);
  void evaluate_rows(const std::vector<NodeId>& nodes);
  void reduce(const Stage& stage);
  void reduce_stripe(const Stage& stage, const std::vector<NodeId>& nodes, Reg first);
  void join_stripes(const Stage& stage);
  void store_elements(const std::vector<NodeId>& values);
  void store_rows();

  template <typename Body>
  void each_register(Body&& body);
  Reg first_entry(const ArrayKey& array, Reg row, Reg* rows);
  Reg entry(const ArrayKey& array, Reg first, Reg column);
  Column column_at(Reg index, Reg exists, const std::vector<NodeId>& nodes);
  void fetch(Column& column, Reg index, const std::map<ArrayKey, Reg>& rows);
  Reg value(NodeId id, Known& known, const Column* column);
  Reg evaluate(NodeId id, Known& known, const Column* column);
  Reg load_scratch(std::int64_t at, Reg more = {});
  void store_scratch(std::int64_t at, Reg value, Reg more = {});

  std::int64_t rows_of(const Turn& turn) const { return std::int64_t{turn.registers} * config_.lanes; }
  std::int64_t bytes_of(const Turn& turn) const {  // of a value for each of its rows
    return rows_of(turn) * static_cast<std::int64_t>(bytes(*program_.compute));
  }
  std::int64_t turn_bytes() const { return bytes_of(at_hand_); }
  std::int64_t partials_of(std::size_t reduction) const {
    auto of_a_stripe = [&](const Turn& turn) { return contract::stripe / turn.leaves * bytes_of(turn); };
    return static_cast<std::int64_t>(reduction) * std::max(of_a_stripe(most_turns_), of_a_stripe(last_turns_));
  }
  Reg totals_of(std::size_t reduction) {  // [stripe], and one more that does not exist
    return b_.mul(b_.add(stripes_, 1), static_cast<std::int64_t>(reduction) * turn_bytes());
  }
  Type type_of(const ArrayKey& array) const {
    return array.result ? *program_.results[array.index].type : *program_.operands[array.index].type;
  }
  const Spread& spread_of(const ArrayKey& array) const {
    return array.result ? program_.results[array.index].spread : program_.operands[array.index].spread;
  }
  ArrayLayout layout_of(const ArrayKey& array) const {
    return array.result ? config_.layout.result(array.index) : config_.layout.operand(array.index);
  }

  const Program& program_;
  const Config& config_;
  const Stages stages_;
  const std::vector<bool> used_, varies_;
  KernelBuilder b_;
  Known whole_;
  Reg zero_, one_, columns_, last_column_, stripes_;
  std::vector<ArrayKey> arrays_;           // all that are read or written
  std::map<ArrayKey, Reg> bases_;          // pointers: per row or element, the turn's first row
  std::map<ArrayKey, Reg> next_;           // the same, of the turn to come
  std::map<ArrayKey, ColumnSteps> steps_;  // of those whose columns lie apart
  const Turn most_turns_, last_turns_{1, 2, false};
  Turn at_hand_ = most_turns_;
  Reg turn_, rows_;                        // its first row, and how many
  Reg row_, mask_;                         // of the register at hand: its first row, in the turn; rows that exist
  std::map<NodeId, std::int64_t> places_;  // of values per row, in scratch
  std::set<NodeId> placed_;                // those that this turn has evaluated
  std::int64_t totals_at_ = 0;
};

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

std::vector<NodeId> AcrossLowering::stored_elements() const {
  std::vector<NodeId> values;
  for (const Output& result : program_.results)
    if (result.spread.column.present) values.push_back(result.value);
  return values;
}

void AcrossLowering::run() {
  zero_ = b_.index(0);
  one_ = b_.index(1);
  columns_ = b_.slot({Slot::Kind::Columns});
  last_column_ = b_.add(columns_, -1);
  stripes_ = b_.index(Do::IndexShiftRight, b_.add(columns_, contract::stripe - 1),
                      std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  std::vector<bool> read = read_operands(program_);
  for (std::size_t k = 0; k < program_.operands.size(); ++k)
    if (read[k] && !program_.operands[k].constant) arrays_.push_back({k, false});
  for (std::size_t r = 0; r < program_.results.size(); ++r) arrays_.push_back({r, true});
  for (const ArrayKey& array : arrays_) {
    if (!spread_of(array).row.present)
      bases_[array] = b_.pointer({Slot::Kind::OperandPointer, static_cast<int>(array.index)});
    if (layout_of(array).strided) steps_[array] = column_steps(b_, layout_of(array), array.index, array.result);
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
  add(rows_for(needed(stored_elements())));
  std::int64_t at = partials_of(most);
  for (NodeId id : rows)
    if (places_.try_emplace(id, at).second) at += bytes_of(most_turns_);
  totals_at_ = at;
  const std::int64_t totals = static_cast<std::int64_t>(most) * bytes_of(most_turns_);
  b_.kernel().scratch_bytes = totals_at_ + totals;
  b_.kernel().scratch_bytes_per_stripe = totals;
  if (b_.kernel().scratch_bytes > 0) b_.slot_number({Slot::Kind::Scratch});
}

void AcrossLowering::evaluate_whole() {
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && level(id) == Level::Whole) whole_[id] = evaluate(id, whole_, nullptr);
}

// Where a row begins; `rows` becomes as many as there are before a stride ends.
Reg AcrossLowering::first_entry(const ArrayKey& array, Reg row, Reg* rows) {
  const int k = static_cast<int>(array.index);
  Reg place = row;
  for (int j = 0; j < layout_of(array).row_jumps; ++j) {
    Reg every = b_.slot({array.result ? Slot::Kind::ResultEvery : Slot::Kind::OperandEvery, k, j});
    Reg jump = b_.slot({array.result ? Slot::Kind::ResultJump : Slot::Kind::OperandJump, k, j});
    Reg jumps = b_.index(Do::IndexDivide, row, every);
    place = b_.add(place, b_.index(Do::IndexMul, jumps, jump));
    if (!rows) continue;
    Reg past = b_.index(Do::IndexSub, row, b_.index(Do::IndexMul, jumps, every));
    *rows = b_.index(Do::IndexMin, *rows, b_.index(Do::IndexSub, every, past));
  }
  Reg base = b_.pointer({array.result ? Slot::Kind::ResultPointer : Slot::Kind::OperandPointer, k});
  return b_.pointer(base, place, static_cast<std::int64_t>(bytes(type_of(array))));
}

// A turn ends where a stride of rows does.
void AcrossLowering::walk() {
  turn_ = b_.copy(b_.argument(0));
  Reg last = b_.argument(1), whole = b_.index(rows_of(most_turns_) - 1);
  b_.repeat_while_less(turn_, last, [&] {
    Reg rows = b_.index(Do::IndexMin, b_.index(Do::IndexSub, last, turn_), rows_of(most_turns_));
    for (const ArrayKey& array : arrays_)
      if (spread_of(array).row.present) bases_[array] = first_entry(array, turn_, &rows);
    rows_ = b_.copy(rows);
    b_.when_less(
        whole, rows,
        [&] {
          Reg next = b_.add(turn_, rows);
          for (const ArrayKey& array : arrays_)
            if (config_.overlap && !array.result && spread_of(array).row.present)
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
  if (std::vector<NodeId> values = stored_elements(); !values.empty()) store_elements(values);
  store_rows();
}

template <typename Body>
void AcrossLowering::each_register(Body&& body) {
  if (at_hand_.registers == 1) {
    row_ = zero_;
    return body();
  }
  row_ = b_.copy(zero_);
  Reg end = b_.index(rows_of(at_hand_));
  b_.repeat_while_less(row_, end, [&] {
    body();
    b_.increase(row_, config_.lanes);
  });
}

Reg AcrossLowering::load_scratch(std::int64_t at, Reg more) {
  Reg value = b_.fresh(Bank::Lane);
  b_.emit({.code = Do::Load,
           .type = *program_.compute,
           .space = Space::Scratch,
           .a = more,
           .b = row_,
           .imm = at,
           .values = {value}});
  return value;
}

void AcrossLowering::store_scratch(std::int64_t at, Reg value, Reg more) {
  b_.emit({.code = Do::Store,
           .type = *program_.compute,
           .space = Space::Scratch,
           .a = more,
           .b = row_,
           .imm = at,
           .values = {value}});
}

Reg AcrossLowering::value(NodeId id, Known& known, const Column* column) {
  if (level(id) == Level::Whole) return whole_.at(id);
  if (level(id) == Level::Column) return column->values.at(id);
  if (auto it = known.find(id); it != known.end()) return it->second;
  return known[id] = placed_.contains(id) ? load_scratch(places_.at(id)) : evaluate(id, known, column);
}

Reg AcrossLowering::evaluate(NodeId id, Known& known, const Column* column) {
  const Node& node = program_[id];
  switch (node.op) {
    case Op::Number: return number(b_, program_, node);
    case Op::Constant: return constant(b_, node);
    case Op::ColumnCount: return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = columns_});
    case Op::ColumnIndex: return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = column->index});
    case Op::RowIndex: return b_.into(Bank::Lane, {.code = Do::LaneColumn, .a = b_.add(turn_, row_)});
    case Op::Operand: {
      const ArrayKey array{static_cast<std::size_t>(node.payload), false};
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
      return primitive(b_, node, args[0], args[1], args[2]);
    }
  }
}

Reg AcrossLowering::entry(const ArrayKey& array, Reg first, Reg column) {
  auto steps = steps_.find(array);
  Reg place = steps == steps_.end() ? column : stepped(b_, steps->second, column);
  return b_.pointer(first, place, static_cast<std::int64_t>(bytes(type_of(array))));
}

AcrossLowering::Column AcrossLowering::column_at(Reg index, Reg exists, const std::vector<NodeId>& nodes) {
  Column column{.index = index, .exists = exists, .entries = {}, .ahead = {}, .values = {}};
  for (NodeId id : nodes) {
    if (program_[id].op != Op::Operand || !program_[id].by_column) continue;
    const ArrayKey array{static_cast<std::size_t>(program_[id].payload), false};
    column.entries[array] = entry(array, bases_.at(array), index);
  }
  for (NodeId id : nodes)
    if (level(id) == Level::Column) column.values[id] = evaluate(id, column.values, &column);
  return column;
}

// Loads of a column fetch another one's lines, too.
void AcrossLowering::fetch(Column& column, Reg index, const std::map<ArrayKey, Reg>& rows) {
  for (const auto& [array, here] : column.entries)
    if (at_hand_.whole && spread_of(array).row.present) column.ahead[array] = entry(array, rows.at(array), index);
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

void AcrossLowering::reduce(const Stage& stage) {
  b_.note("a sweep that reduces");
  const std::vector<NodeId> nodes = needed(roots_of(stage));
  evaluate_rows(nodes);
  Reg first = b_.copy(zero_);
  b_.repeat_while_less(first, columns_, [&] {
    reduce_stripe(stage, nodes, first);
    b_.increase(first, contract::stripe);
  });
  join_stripes(stage);
  placed_.insert(stage.reductions.begin(), stage.reductions.end());
}

// Columns c, c + width, c + 2 width ... become one partial sum; `width` of them cover the stripe, or a last one's
// columns: absent halves of a tree change nothing. Then its lower levels.
void AcrossLowering::reduce_stripe(const Stage& stage, const std::vector<NodeId>& nodes, Reg first) {
  const int leaves = at_hand_.leaves;
  const std::size_t reductions = stage.reductions.size();
  auto op = [&](std::size_t r) { return program_[stage.reductions[r]].op; };
  Reg width = b_.index(contract::stripe / leaves), half = b_.index(contract::stripe / 2);
  Reg last = b_.index(Do::IndexSub, last_column_, first);
  b_.repeat_while_less(last, half, [&] {
    b_.emit({.code = Do::IndexShiftRight, .dst = width, .a = width, .imm = 1});
    b_.emit({.code = Do::IndexMul, .dst = half, .a = b_.index(Do::IndexShiftRight, width, 1), .imm = leaves});
  });
  Reg at = b_.copy(zero_), place = b_.copy(zero_);
  b_.repeat_while_less(at, width, [&] {
    std::vector<Column> columns;
    Reg index = b_.add(first, at);
    for (int k = 0; k < leaves; ++k) {
      if (k > 0) index = b_.add(index, width);
      // The same answer in all lanes: no column is as far off as lanes are.
      Reg past = b_.mul(b_.index(Do::IndexSub, index, columns_), 64);
      Reg exists = k == 0 ? Reg{} : b_.below(past, 0, zero_);
      columns.push_back(column_at(b_.index(Do::IndexMin, index, last_column_), exists, nodes));
      // The next column: of the next one's neighbours most are on their way already.
      if (config_.prefetch && !config_.overlap) fetch(columns.back(), b_.add(columns.back().index, 1), bases_);
    }
    each_register([&] {
      Known rows;
      for (NodeId id : rows_for(nodes)) value(id, rows, nullptr);
      auto leaf = [&](const Column& column) {
        Known known = rows;
        for (NodeId id : nodes)
          if (per_element(id)) value(id, known, &column);
        Values sums;
        for (std::size_t r = 0; r < reductions; ++r) {
          Reg term = value(program_[stage.reductions[r]].args[0], known, &column);
          if (column.exists) term = b_.primitive(Op::Select, {column.exists, term, b_.number(identity_of(op(r)))});
          sums.push_back(term);
        }
        return sums;
      };
      auto tree = [&](auto&& self, int base, int step) -> Values {
        if (step == leaves) return leaf(columns[base]);
        Values low = self(self, base, step * 2), high = self(self, base + step, step * 2);
        for (std::size_t r = 0; r < reductions; ++r) low[r] = combine(b_, op(r), low[r], high[r]);
        return low;
      };
      Values sums = tree(tree, 0, 1);
      for (std::size_t r = 0; r < reductions; ++r) store_scratch(partials_of(r), sums[r], place);
    });
    b_.increase(at, 1);
    b_.increase(place, turn_bytes());
  });
  b_.repeat_while_less(one_, width, [&] {
    b_.emit({.code = Do::IndexShiftRight, .dst = width, .a = width, .imm = 1});
    Reg low = b_.copy(zero_), end = b_.mul(width, turn_bytes());
    b_.repeat_while_less(low, end, [&] {
      Reg high = b_.add(low, end);
      each_register([&] {
        for (std::size_t r = 0; r < reductions; ++r) {
          Reg sum = combine(b_, op(r), load_scratch(partials_of(r), low), load_scratch(partials_of(r), high));
          store_scratch(partials_of(r), sum, low);
        }
      });
      b_.increase(low, turn_bytes());
    });
  });
  Reg stripe = b_.index(Do::IndexShiftRight, first, std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  std::vector<Reg> totals;
  for (std::size_t r = 0; r < reductions; ++r) totals.push_back(b_.add(b_.mul(stripe, turn_bytes()), totals_of(r)));
  each_register([&] {
    for (std::size_t r = 0; r < reductions; ++r) store_scratch(totals_at_, load_scratch(partials_of(r)), totals[r]);
  });
}

// Neighbours become one, level by level; one that is left over meets the identity.
void AcrossLowering::join_stripes(const Stage& stage) {
  for (std::size_t r = 0; r < stage.reductions.size(); ++r) {
    const NodeId id = stage.reductions[r];
    const Op op = program_[id].op;
    Reg totals = totals_of(r), count = b_.copy(stripes_);
    b_.repeat_while_less(one_, count, [&] {
      Reg beyond = b_.add(totals, b_.mul(count, turn_bytes()));
      each_register([&] { store_scratch(totals_at_, b_.number(identity_of(op)), beyond); });
      Reg to = b_.copy(totals), from = b_.copy(totals);
      b_.repeat_while_less(from, beyond, [&] {
        Reg neighbour = b_.add(from, turn_bytes());
        each_register([&] {
          Reg low = load_scratch(totals_at_, from), high = load_scratch(totals_at_, neighbour);
          store_scratch(totals_at_, combine(b_, op, low, high), to);
        });
        b_.increase(from, 2 * turn_bytes());
        b_.increase(to, turn_bytes());
      });
      b_.emit({.code = Do::IndexShiftRight, .dst = count, .a = b_.add(count, 1), .imm = 1});
    });
    each_register([&] { store_scratch(places_.at(id), load_scratch(totals_at_, totals)); });
  }
}

void AcrossLowering::store_elements(const std::vector<NodeId>& values) {
  b_.note("a sweep that stores");
  const std::vector<NodeId> nodes = needed(values);
  evaluate_rows(nodes);
  Reg at = b_.copy(zero_);
  b_.repeat_while_less(at, columns_, [&] {
    Column column = column_at(at, {}, nodes);
    if (config_.overlap) fetch(column, at, next_);
    else if (config_.prefetch) fetch(column, b_.add(at, 8), bases_);
    std::map<std::size_t, Reg> targets;
    for (std::size_t r = 0; r < program_.results.size(); ++r)
      if (program_.results[r].spread.column.present) targets[r] = entry({r, true}, bases_.at({r, true}), at);
    each_register([&] {
      Known known;
      for (NodeId id : nodes)
        if (per_element(id)) value(id, known, &column);
      for (const auto& [r, target] : targets)
        b_.emit({.code = Do::Store,
                 .type = *program_.results[r].type,
                 .hint = config_.streaming ? Hint::Streaming : Hint::None,
                 .a = target,
                 .b = row_,
                 .c = mask_,
                 .values = {value(program_.results[r].value, known, &column)}});
    });
    b_.increase(at, 1);
  });
}

void AcrossLowering::store_rows() {
  if (stages_.row_stores.empty()) return;
  b_.note("results per row");
  std::vector<NodeId> values;
  for (std::size_t r : stages_.row_stores) values.push_back(program_.results[r].value);
  each_register([&] {
    Known known;
    for (NodeId id : needed(values)) value(id, known, nullptr);
    for (std::size_t r : stages_.row_stores)
      b_.emit({.code = Do::Store,
               .type = *program_.results[r].type,
               .a = bases_.at({r, true}),
               .b = row_,
               .c = mask_,
               .values = {value(program_.results[r].value, known, nullptr)}});
  });
}

}  // namespace

bool goes_across(const Program& program) {
  bool elements = false;
  for (const Output& result : program.results) {
    if (program[result.value].op == Op::ColumnSum || !result.spread.row.present || !result.spread.plain()) return false;
    elements |= result.spread.column.present;
  }
  for (const Operand& operand : program.operands) {
    if (operand.constant) continue;
    if (!operand.spread.plain()) return false;
    elements |= operand.spread.row.present && operand.spread.column.present;
  }
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && (program[id].op >= Op::Mean || compares_integers(program, program[id]))) return false;
  return elements;
}

void lower_across(const Program& program, const Config& config, Kernel& kernel) {
  AcrossLowering(program, config, kernel).run();
}

}  // namespace trireme
