// Evaluates nodes: values of the whole kernel in its prologue, of a row before a sweep, of a chunk during it.
#include <algorithm>
#include <bit>

#include "ir/index_arithmetic.hpp"
#include "ir/integers.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/work.hpp"

namespace trireme {

// A load and a store a chunk, against making it again from what lies in memory: an exponential is 15 instructions, a
// rounding to bf16 6, a draw of random numbers 220. A kernel depends on its config alone, so these are counts for simd
// machines in general.
bool RowLowering::worth_keeping(NodeId id, std::size_t sweep) const {
  constexpr int least = 8;
  if (!config_.simd || !program_[id].by_column || !varies_by_row(id) || is_condition(program_[id].op) ||
      is_kept_group(id))
    return false;
  bool known = false;
  for (std::size_t k = 0; k < sweep; ++k) known |= std::binary_search(work_[k].chunk.begin(), work_[k].chunk.end(), id);
  if (!known) return false;
  std::vector<bool> seen(program_.size());
  std::vector<NodeId> open = {id};
  int cost = 0;
  while (!open.empty() && cost < least) {
    NodeId next = open.back();
    open.pop_back();
    const Node& node = program_[next];
    if (seen[next] || !node.by_column || is_row_reduction(node.op) || node.op == Op::Rotate || is_kept_group(next))
      continue;
    seen[next] = true;
    cost += instructions_of(program_, next, InstructionCosts{});
    for (NodeId arg : node) open.push_back(arg);
  }
  return cost >= least;
}

Instr RowLowering::kept_access(Do code, NodeId id, const Leaf& leaf) {
  auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.id == id; });
  return {.code = code,
          .type = *program_.compute,
          .space = Space::Scratch,
          .a = kept->at,
          .b = leaf.column,
          .c = leaf.mask,
          .imm = leaf.offset * value_bytes()};
}

void RowLowering::plan_work() {
  used_ = reachable(program_);
  varies_by_row_ = varying_by_row(program_);
  if (by_entries())
    for (NodeId id = 0; id < program_.size(); ++id) {
      const Node& node = program_[id];
      varies_by_row_[id] = node.arity ? is_row_reduction(node.op) || node.op == Op::Group || node.op == Op::Random
                                      : node.by_row && !(node.op == Op::Operand && same_in_block(node.payload));
      for (NodeId arg : node) varies_by_row_[id] = varies_by_row_[id] || varies_by_row_[arg];
    }
  // What a rotation turns by stands in its accesses, and so does what a group's columns share and where random
  // numbers start; it is a value only where others compute with it.
  auto amounts = [](const Node& node) {
    return node.op == Op::Rotate || node.op == Op::Group || node.op == Op::Random ? node.arity - 1 : 0;
  };
  std::vector<bool> computed(program_.size());
  for (const Output& result : program_.results)
    if (result.value != no_node) computed[result.value] = true;
  for (NodeId id = 0; id < program_.size(); ++id)
    for (int k = 0; used_[id] && k < program_[id].arity - amounts(program_[id]); ++k)
      computed[program_[id].args[k]] = true;
  for (NodeId id = 0; id < program_.size(); ++id) {
    if (!used_[id]) continue;
    for (int k = program_[id].arity - amounts(program_[id]); k < program_[id].arity; ++k)
      used_[program_[id].args[k]] = computed[program_[id].args[k]];
    reads_other_columns_ |=
        program_[id].op == Op::Rotate || program_[id].op == Op::PickColumn || compares_integers(program_, program_[id]);
  }
  find_values_of_groups();
  find_group_widths();
  for (std::size_t k = 0; k <= stages_.sweeps.size(); ++k) {
    std::vector<NodeId> open, of_row;
    if (k < stages_.sweeps.size()) {
      Stage stage = stages_.sweeps[k];
      plan_values_of_groups(k, stage.elements(program_), of_row);
      if (config_.simd)  // terms are made by themselves
        std::erase_if(stage.groups, [&](NodeId id) {
          if (!apart(id)) return false;
          for (NodeId row_value : row_values_below(program_[id].args[0])) of_row.push_back(row_value);
          return true;
        });
      open = stage.elements(program_);
      open.insert(open.end(), of_row.begin(), of_row.end());
    } else {
      for (std::size_t r : stages_.row_stores) open.push_back(program_.results[r].value);
      for (std::size_t r : stages_.row_sums) open.push_back(program_[program_.results[r].value].args[0]);
    }
    std::vector<bool> wanted(program_.size());
    while (!open.empty()) {
      NodeId id = open.back();
      open.pop_back();
      if (wanted[id]) continue;
      wanted[id] = true;
      if (worth_keeping(id, k)) {
        std::size_t first = 0;
        while (!std::binary_search(work_[first].chunk.begin(), work_[first].chunk.end(), id)) ++first;
        if (std::none_of(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.id == id; }))
          kept_.push_back({.id = id, .sweep = first});
        continue;
      }
      // An earlier sweep's result; or something that looks at its arguments in its own way.
      if (is_row_reduction(program_[id].op) || is_kept_group(id) || program_[id].op == Op::Rotate ||
          program_[id].op == Op::Random || compares_integers(program_, program_[id]) || known_remainder(id))
        continue;
      if (program_[id].op == Op::PickColumn) {  // its value is made for one column; what that needs of the row is known
        for (NodeId arg : row_values_below(program_[id].args[0])) open.push_back(arg);
        continue;
      }
      if (program_[id].op == Op::Group && spans_chunks(id)) {  // made of parts, by themselves
        for (NodeId arg : row_values_below(program_[id].args[0])) open.push_back(arg);
        continue;
      }
      if (program_[id].op == Op::Group) open.push_back(program_[id].args[0]);
      else
        for (NodeId arg : program_[id]) open.push_back(arg);
    }
    Work work;
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (!wanted[id]) continue;
      if (program_[id].by_column) {
        work.chunk.push_back(id);
      } else if (varies_by_row(id)) {
        work.row.push_back(id);
      }
    }
    work_.push_back(std::move(work));
  }
  for (std::size_t k = 0; k < stages_.sweeps.size(); ++k) plan_elements(k);
}

void RowLowering::evaluate_whole() {
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && program_[id].op == Op::Random) {
      const NodeId seed = program_[id].args[0];
      if (!seeds_.contains(seed)) seeds_[seed] = integer_of_row(seed);
    }
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && !seeds_.contains(id) && !program_[id].by_column && !varies_by_row(id) &&
        !is_column_reduction(program_[id].op))
      whole_[id] = names_.say(b_, id, evaluate_one(id));
}

void RowLowering::evaluate_row(const std::vector<NodeId>& nodes) {
  for (NodeId id : nodes)
    if (!row_values_.contains(id)) row_values_[id] = names_.say(b_, id, evaluate_one(id));
}

Reg RowLowering::one(NodeId id) const { return varies_by_row(id) ? row_values_.at(id) : whole_.at(id); }

Reg RowLowering::evaluate_one(NodeId id) {
  const Node& node = program_[id];
  switch (node.op) {
    case Op::Number: return number(b_, program_, node);
    case Op::Constant: return constant(b_, node);
    case Op::Operand: {
      const Operand& operand = program_.operands[node.payload];
      Instr load{.code = Do::LoadOne, .type = *operand.type};
      if (operand.spread.row.present) {
        load.a = row_pointer(node.payload);
        load.c = state_.exists;
      } else {
        load.a = b_.pointer_to(node.payload);
      }
      const Reg value = b_.into(Bank::Lane, std::move(load));
      return inside_or_0(node.payload, {value})[0];
    }
    case Op::PickColumn: return pick_column(node);
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal:
      if (compares_integers(program_, node)) return integer_condition_of_row(node);
      [[fallthrough]];
    default: {
      Reg args[3];
      for (int k = 0; k < node.arity; ++k) args[k] = one(node.args[k]);
      // Dividing by a power of two is multiplying by another: the same number, rounded once.
      if (node.op == Op::Div && program_[node.args[1]].op == Op::ColumnCount && config_.columns &&
          std::has_single_bit(static_cast<std::uint64_t>(config_.columns)))
        return b_.primitive(Op::Mul, {args[0], b_.number(1.0 / static_cast<double>(config_.columns))});
      return primitive(b_, node, args[0], args[1], args[2]);
    }
    case Op::RowIndex: return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = row_});
    case Op::ColumnCount:
      if (config_.columns && config_.columns <= 1 << 24) return b_.number(static_cast<double>(config_.columns));
      return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = columns_});
  }
}

// The values that do not vary by column and that one which does is made of.
std::vector<NodeId> RowLowering::row_values_below(NodeId root) const {
  std::vector<bool> reached(root + 1);
  std::vector<NodeId> found;
  reached[root] = true;
  for (NodeId id = root + 1; id-- > 0;) {
    if (!reached[id]) continue;
    if (!program_[id].by_column) found.push_back(id);
    else if (program_[id].op != Op::Rotate && !compares_integers(program_, program_[id]))
      for (NodeId arg : program_[id]) reached[arg] = true;
  }
  return found;
}

// Where a chunk's value is remembered: for the leaf at hand, for the row, or (hoisted) for all rows.
ValuesByNode& RowLowering::memory_of(NodeId id, const Leaf& leaf) {
  if (leaf.id < 0) return loop_values_;
  return config_.hoist && !varies_by_row(id) ? all_leaves_[leaf.id] : row_leaves_[leaf.id];
}

Values RowLowering::chunk(NodeId id, const Leaf& leaf) {
  if (!program_[id].by_column) return Values(config_.vector, one(id));
  return *memory_of(id, leaf).find(id);
}

// Pointers stay at a row's first column.
Instr RowLowering::element_access(Do code, Type type, const ArrayLayout& layout, const Leaf& leaf) const {
  Instr instr{.code = code, .type = type, .b = leaf.column};
  instr.imm = leaf.offset * static_cast<std::int64_t>(bytes(type));
  if (!layout.backwards) return instr;
  instr.backwards = code != Do::Prefetch;
  if (leaf.back) instr.b = leaf.back;
  instr.imm = -instr.imm;
  return instr;
}

Reg RowLowering::back_from(Reg column) { return layout_.backwards() ? b_.index(Do::IndexSub, zero_, column) : Reg{}; }

Values RowLowering::load_chunk(std::size_t index, const Leaf& leaf) {
  const Operand& operand = program_.operands[index];
  ColumnMap map = map_of_operand(index, 0);
  if (!map.plain())
    return load_mapped(*operand.type, operand.spread.row.present ? row_pointer(index) : column_pointers_.at(index), map,
                       leaf);
  Instr load = element_access(Do::Load, *operand.type, layout_.array(index), leaf);
  load.c = leaf.mask;
  if (in_ring(index) && !column_shift_) {
    load.space = Space::Scratch;
    load.b = block_column_;
    load.a = ring_offset_;
    load.imm += ring_operands_.at(index);
  } else if (auto staged = staged_operands_.find(index); staged != staged_operands_.end() && !column_shift_) {
    load.space = Space::Scratch;
    load.b = block_column_;
    load.imm += staged->second;
  } else {
    load.a = operand.spread.row.present ? row_pointer(index) : column_pointers_.at(index);
    if (points_at_column(index)) load.b = column_shift_;
  }
  Values values = load.values = fresh_values();
  b_.emit(std::move(load));
  return values;
}

// Threads take columns from a multiple of their vector on: remainders of those are known.
std::int64_t RowLowering::known_remainder(NodeId id) const {
  const std::int64_t by = config_.simd ? 0 : column_remainder(program_, id);
  return by && config_.vector % by == 0 ? by : 0;
}

Reg RowLowering::random(const Node& node, const Leaf& leaf, int element) {
  const FirstPlace first = first_place(program_, node);
  const bool four_at_once = !config_.simd && config_.vector % 4 == 0 && first.column % 4 == 0;
  return b_.into(Bank::Lane, {.code = Do::Random,
                              .a = leaf.column,
                              .b = drawn_row(first.row),
                              .d = seeds_.at(node.args[0]),
                              .imm = first.column + leaf.offset + element,
                              .imm2 = node.payload,
                              .count = four_at_once ? 4 : 0});
}

Reg RowLowering::random_at(const Node& node, Reg column) {
  const FirstPlace first = first_place(program_, node);
  return b_.into(Bank::Lane, {.code = Do::Random,
                              .a = column,
                              .b = drawn_row(first.row),
                              .d = seeds_.at(node.args[0]),
                              .imm = first.column,
                              .imm2 = node.payload,
                              .count = 1});
}

Reg RowLowering::drawn_row(std::int64_t first) const { return first == 0 ? row_ : drawn_rows_.at(first); }

Values RowLowering::fresh_values() {
  Values values;
  for (int e = 0; e < config_.vector; ++e) values.push_back(b_.fresh(Bank::Lane));
  return values;
}

void RowLowering::evaluate_chunk(const std::vector<NodeId>& nodes, const Leaf& leaf) {
  for (NodeId id : nodes) {
    ValuesByNode& memory = memory_of(id, leaf);
    if (memory.find(id)) continue;
    if (const Groups* made = value_of_groups(id)) {
      memory.put(id, load_rematerialised(*made, leaf));
      continue;
    }
    if (const Values* known = shared_in_group(id, leaf)) {
      memory.put(id, *known);
      continue;
    }
    const Node& node = program_[id];
    // Elements of a thread that have one value: it is made once.
    const int distinct = group_width_[id] && group_width_[id] % config_.vector == 0 ? 1 : config_.vector;
    Values values;
    if (node.op == Op::Operand) {
      values = inside_or_0(node.payload, load_chunk(node.payload, leaf));
    } else if (node.op == Op::Rotate) {
      const Node& inner = program_[node.args[0]];
      if (inner.op == Op::Group) {
        values = load_group(node.args[0], rotation(id), leaf);
      } else if (inner.op == Op::Operand) {
        const Operand& operand = program_.operands[inner.payload];
        Reg pointer = operand.spread.row.present ? row_pointer(inner.payload) : column_pointers_.at(inner.payload);
        values = load_mapped(*operand.type, pointer, map_of_operand(inner.payload, rotation(id)), leaf);
        values = inside_or_0(inner.payload, values);
      } else {
        values = rotated_index(inner, rotation(id), leaf);
      }
    } else if (node.op == Op::Random) {
      for (int e = 0; e < config_.vector; ++e) values.push_back(random(node, leaf, e));
    } else if (compares_integers(program_, node)) {
      values = integer_condition(node, leaf);
    } else if (node.op == Op::Group) {
      values = wrapped(id)         ? *wrapped_sums_.at(id)[leaf.id % chunks()]
               : is_kept_group(id) ? load_group(id, 0, leaf)
               : spans_chunks(id)  ? group_over_chunks(node, leaf)
                                   : group_in_chunk(id, leaf);
    } else if (const std::int64_t by = known_remainder(id)) {
      for (int e = 0; e < config_.vector; ++e) values.push_back(b_.number(static_cast<double>(e % by)));
    } else if (node.op == Op::ColumnIndex) {
      for (int e = 0; e < config_.vector; ++e)
        values.push_back(b_.into(Bank::Lane, {.code = Do::LaneColumn, .a = leaf.column, .imm = leaf.offset + e}));
    } else {
      Values args[3];
      for (int k = 0; k < node.arity; ++k) args[k] = chunk(node.args[k], leaf);
      auto arg = [&](int k, int e) { return k < node.arity ? args[k][e] : Reg{}; };
      for (int e = 0; e < distinct; ++e) values.push_back(primitive(b_, node, arg(0, e), arg(1, e), arg(2, e)));
      while (static_cast<int>(values.size()) < config_.vector) values.push_back(values.back());
    }
    share_in_group(id, leaf, values);
    if (!memory.find(id)) memory.put(id, names_.say(b_, id, std::move(values)));
  }
}

// Column values (a weight, a bias) of unrolled chunks are the same for every row: they are loaded once, before the
// first row, and early enough to be there when the first sum is.
void RowLowering::hoist_columns() {
  for (int stripe = 0; stripe < config_.stripes; ++stripe)
    for (int c = 0; c < chunks(); ++c) {
      Leaf leaf = unrolled_leaf(stripe, c, {.limit = columns_});
      if (leaf.id < 0) continue;
      for (const Work& work : work_)
        for (NodeId id : work.chunk)
          if (!varies_by_row(id)) evaluate_chunk({id}, leaf);
    }
}

}  // namespace trireme
