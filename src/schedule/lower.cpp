#include "schedule/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "ir/contract.hpp"
#include "ir/integers.hpp"
#include "schedule/lower_columns.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {

RowLowering::RowLowering(const Program& program, const Stages& stages, const Config& config, Kernel& kernel)
    : program_(program), stages_(stages), config_(config), layout_(config.layout), b_(kernel) {}

int RowLowering::chunks() const {
  std::int64_t covered = config_.lanes * config_.vector;
  std::int64_t wanted = config_.columns ? std::min(config_.columns, contract::stripe) : contract::stripe;
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>((wanted + covered - 1) / covered)));
}

bool RowLowering::in_ring(std::size_t operand) const { return ring_operands_.contains(operand); }

Reg RowLowering::row_pointer(std::size_t index, bool result) {
  auto& known = result ? result_rows_ : operand_rows_;
  if (auto it = known.find(index); it != known.end()) return it->second;
  int k = static_cast<int>(index);
  Type type = result ? *program_.results[index].type : *program_.operands[index].type;
  Reg base = b_.pointer({result ? Slot::Kind::ResultPointer : Slot::Kind::OperandPointer, k});
  Reg stride = b_.slot({result ? Slot::Kind::ResultStride : Slot::Kind::OperandStride, k});
  const Spread& spread = result ? program_.results[index].spread : program_.operands[index].spread;
  Reg row = mapped_row(spread.row);
  Reg pointer = b_.pointer(base, b_.index(Do::IndexMul, row, stride), static_cast<std::int64_t>(bytes(type)));
  return known[index] = pointer;
}

// Which columns a thread looks after: group g of a team takes the stripes from g * config.stripes on, so that each
// group's stripes are one subtree of the contract's sum.
void RowLowering::locate_threads() {
  zero_ = b_.index(0);
  one_index_ = b_.index(1);
  columns_ = config_.columns ? b_.index(config_.columns) : b_.slot({Slot::Kind::Columns});
  limit_ = columns_;
  if (config_.simd) {
    thread_column_ = zero_;
    return;
  }
  lane_ = b_.special(Do::ThreadLane);
  group_ = b_.special(Do::ThreadGroup);
  team_ = b_.special(Do::ThreadTeam);
  row_owner_ = config_.groups > 1 ? b_.add(b_.mul(group_, config_.lanes), lane_) : lane_;
  thread_column_ = b_.mul(lane_, config_.vector);
  if (config_.stripes && config_.groups > 1)
    thread_column_ = b_.add(thread_column_, b_.mul(group_, config_.stripes * contract::stripe));
}

bool RowLowering::always_inside(std::int64_t offset) const {
  if (!config_.columns) return false;
  std::int64_t last_group = (config_.groups - 1) * config_.stripes * contract::stripe;
  return last_group + offset + config_.lanes * config_.vector <= config_.columns;
}

// Chunk `c` of a group's unrolled stripe; its id is -1 where no group has such columns.
Leaf RowLowering::unrolled_leaf(int stripe, int c, Reg limit) {
  Leaf leaf;
  leaf.offset = stripe * contract::stripe + static_cast<std::int64_t>(c) * config_.lanes * config_.vector;
  if (leaf.offset >= config_.columns) return leaf;
  leaf.id = stripe * chunks() + c;
  leaf.column = thread_column_;
  if (limit_varies_ || !always_inside(leaf.offset)) leaf.mask = b_.below(thread_column_, leaf.offset, limit);
  return leaf;
}

void RowLowering::lay_out_scratch() {
  std::int64_t at = 0;
  std::size_t reductions = 0, sweeps = 0;
  for (const Stage& stage : stages_.sweeps) {
    reductions = std::max(reductions, stage.reductions.size());
    sweeps += !stage.reductions.empty();
  }
  std::int64_t count = static_cast<std::int64_t>(reductions);
  if (config_.stripes) {
    if (config_.groups > 1) {
      for (const Stage& stage : stages_.sweeps) {
        sums_at_.push_back(at);
        at += static_cast<std::int64_t>(stage.reductions.size()) * config_.groups * value_bytes();
      }
      // With one barrier a row a slow group may still read what a fast one writes for the next row: two buffers. With
      // two barriers a row nobody can be that late.
      if (sweeps == 1) parity_bytes_ = at, at *= 2;
    }
    if (config_.ring) {
      at = (at + 15) / 16 * 16;
      ring_at_ = at;
      std::int64_t covered =
          static_cast<std::int64_t>(config_.groups) * config_.stripes * chunks() * config_.lanes * config_.vector;
      for (std::size_t k = 0; k < program_.operands.size(); ++k) {
        const Operand& operand = program_.operands[k];
        if (operand.constant || !operand.spread.row.present || !operand.spread.column.present) continue;
        if (!operand.spread.plain() || (k < layout_.strided_operands.size() && layout_.strided_operands[k])) continue;
        std::int64_t size = static_cast<std::int64_t>(bytes(*operand.type));
        std::int64_t piece = size * config_.vector;
        if (piece != 4 && piece != 8 && piece != 16) continue;
        ring_operands_[k] = ring_slot_bytes_;
        ring_slot_bytes_ += covered * size;
      }
      at += ring_slot_bytes_ * config_.ring * config_.teams;
    }
  } else {
    std::int64_t vector_bytes = config_.lanes * value_bytes();
    if (config_.simd) {
      spill_at_ = at;
      at += count * chunks() * vector_bytes;
      totals_at_ = at;
      b_.kernel().scratch_bytes_per_stripe = count * value_bytes();
      at += vector_bytes;  // the last group of totals is loaded as a whole vector
    } else {
      totals_at_ = at;
      at += count * 2 * contract::stripes(config_.columns) * value_bytes();
    }
  }
  if (config_.simd && goes_lane_by_lane(program_, layout_)) {
    lanes_at_ = at;
    at += config_.lanes * value_bytes();
  }
  b_.kernel().scratch_bytes = at;
  if (config_.simd && at > 0) b_.slot_number({Slot::Kind::Scratch});
}

void RowLowering::run() {
  plan_work();
  locate_threads();
  lay_out_scratch();
  if (!config_.stripes)
    stripes_ = b_.index(Do::IndexShiftRight, b_.add(columns_, contract::stripe - 1),
                        std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  for (std::size_t k = 0; k < program_.operands.size(); ++k) {
    const Operand& operand = program_.operands[k];
    if (!operand.constant && !operand.spread.row.present && operand.spread.column.present)
      column_pointers_[k] = b_.pointer({Slot::Kind::OperandPointer, static_cast<int>(k)});
  }
  evaluate_amounts();
  b_.note("values of the whole kernel");
  evaluate_whole();
  if (config_.stripes) {
    int leaves = config_.stripes * chunks();
    row_leaves_.resize(leaves);
    all_leaves_.resize(leaves);
    if (config_.hoist) hoist_columns();
  }
  if (parity_bytes_) parity_ = b_.copy(zero_);
  walk_blocks();
}

// A team takes the rows of a block one after the other. A simd machine's one team takes all blocks.
void RowLowering::walk_blocks() {
  Reg first = b_.argument(0), last = b_.argument(1);
  Reg row_block = b_.slot({Slot::Kind::RowBlock});
  bool sums = !stages_.column_results.empty();
  if (config_.simd) {
    row_ = b_.copy(first);
    if (!sums) return walk_rows(first, last);
    Reg block = b_.index(Do::IndexDivide, first, row_block);
    b_.note("a block of rows");
    b_.repeat_while_less(row_, last, [&] {
      Reg end = b_.index(Do::IndexMin, b_.add(row_, row_block), last);
      begin_column_sums(block);
      walk_rows(row_, end);
      finish_column_sums();
      b_.increase(block, 1);
    });
    return;
  }
  Reg block = b_.special(Do::BlockIndex);
  if (config_.teams > 1) block = b_.add(b_.mul(block, config_.teams), team_);
  row_ = b_.add(first, b_.index(Do::IndexMul, block, row_block));
  Reg end = b_.index(Do::IndexMin, b_.add(row_, row_block), last);
  if (sums) {
    block = b_.add(b_.index(Do::IndexDivide, first, row_block), block);
    begin_column_sums(block);
  }
  walk_rows(row_, end);
  if (sums) {
    if (config_.teams > 1) {  // a team beyond the last block has nothing to write
      Reg blocks = b_.slot({Slot::Kind::Blocks});
      limit_ =
          b_.index(Do::IndexMin, columns_, b_.index(Do::IndexMul, b_.index(Do::IndexSub, blocks, block), columns_));
    }
    finish_column_sums();
  }
}

void RowLowering::walk_rows(Reg, Reg end) {
  int ahead = config_.ring - 1;
  Reg fill, filled_to;
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
      b_.increase(row, 1);
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
      prefetch(b_.add(row_, ahead), end, fill);
      advance(fill);
      b_.emit({.code = Do::CopyWait, .imm = ahead});
    }
    one_row();
    if (config_.ring) advance(ring_offset_);
    if (parity_) b_.emit({.code = Do::IndexSub, .dst = parity_, .a = b_.index(parity_bytes_), .b = parity_});
    b_.increase(row_, 1);
  };
  b_.note("a row");
  if (config_.simd || config_.teams == 1) {
    b_.repeat_while_less(row_, end, body);
    return;
  }
  // Teams of one warp shuffle together, so they keep step: a team without a row works on nothing.
  Reg turn = b_.copy(zero_), turns = b_.slot({Slot::Kind::RowBlock});
  limit_varies_ = true;
  b_.repeat_while_less(turn, turns, [&] {
    Reg left = b_.index(Do::IndexSub, end, row_);
    limit_ = b_.index(Do::IndexMin, columns_, b_.index(Do::IndexMul, left, columns_));
    row_exists_ = b_.below(zero_, 0, limit_);
    body();
    b_.increase(turn, 1);
  });
}

// Starts the copies of a row's elements into the ring; a thread copies just what it will read itself, so that no
// barrier is needed.
void RowLowering::prefetch(Reg row, Reg end, Reg ring_offset) {
  Reg left = b_.index(Do::IndexSub, end, row);
  Reg limit = b_.index(Do::IndexMin, columns_, b_.index(Do::IndexMul, left, columns_));
  for (std::size_t k = 0; k < program_.operands.size(); ++k) {
    if (!in_ring(k)) continue;
    std::int64_t size = static_cast<std::int64_t>(bytes(*program_.operands[k].type));
    Reg base = b_.pointer({Slot::Kind::OperandPointer, static_cast<int>(k)});
    Reg stride = b_.slot({Slot::Kind::OperandStride, static_cast<int>(k)});
    Reg pointer = b_.pointer(base, b_.index(Do::IndexMul, row, stride), size);
    Reg target = b_.add(ring_offset, b_.mul(thread_column_, size));
    for (int stripe = 0; stripe < config_.stripes; ++stripe)
      for (int c = 0; c < chunks(); ++c) {
        Leaf leaf = unrolled_leaf(stripe, c, limit);
        if (leaf.id < 0) continue;
        Reg mask = leaf.mask ? leaf.mask : b_.below(thread_column_, leaf.offset, limit);
        b_.emit({.code = Do::CopyAsync,
                 .type = *program_.operands[k].type,
                 .a = pointer,
                 .b = thread_column_,
                 .c = mask,
                 .d = target,
                 .imm = leaf.offset * size,
                 .imm2 = ring_operands_.at(k) + leaf.offset * size,
                 .count = config_.vector});
      }
  }
  b_.emit({.code = Do::CopyCommit});
}

void RowLowering::one_row() {
  row_values_.clear();
  operand_rows_.clear();
  result_rows_.clear();
  mapped_rows_.clear();
  for (auto& leaf : row_leaves_) leaf.clear();
  // Pointers are wanted before any loop, whose body may not run.
  for (NodeId id = 0; id < program_.size(); ++id)
    if (used_[id] && program_[id].op == Op::Operand && program_.operands[program_[id].payload].spread.row.present)
      row_pointer(program_[id].payload, false);
  for (std::size_t r = 0; r < program_.results.size(); ++r)
    if (program_.results[r].spread.row.present) row_pointer(r, true);
  for (std::size_t k = 0; k < stages_.sweeps.size(); ++k) sweep(k);
  store_rows();
  if (!config_.simd && !config_.stripes) b_.emit({.code = Do::Barrier});  // scratch is written again by the next row
}

void RowLowering::store_rows() {
  evaluate_row(work_.back().row);
  for (std::size_t r : stages_.row_stores) {
    const Output& result = program_.results[r];
    Instr store{.code = Do::StoreOne, .type = *result.type, .a = row_pointer(r, true), .values = {one(result.value)}};
    // The thread that has the row's first column.
    if (!config_.simd) store.c = b_.below(row_owner_, 0, b_.index(Do::IndexMin, limit_, 1));
    b_.emit(std::move(store));
  }
}

namespace {

Status lowerable(const Program& program, const Config& config) {
  auto refuse = [&](std::string what) { return Error{trireme::Code::Unsupported, program.name + ": " + what}; };
  for (const Output& result : program.results) {
    bool sum = program[result.value].op == Op::ColumnSum;
    if (!result.spread.plain() || (sum && !(result.spread.column.present && !result.spread.row.present)))
      return refuse("results spread like " + result.name + " are not lowered yet");
    if (!sum && !result.spread.row.present)
      return refuse("results spread like " + result.name + " are not lowered yet");
  }
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && program[id].op >= Op::Mean && program[id].op != Op::Rotate)
      return refuse(fmt::format("{} is not lowered yet", facts(program[id].op).name));
  if (!config.simd && !config.columns) return refuse("thread machines fix the number of columns");
  if (config.stripes && !config.columns) return refuse("unrolled stripes fix the number of columns");
  return Done{};
}

}  // namespace

Result<Kernels> lower(const Program& program, const Config& config) {
  TRIREME_CHECK(lowerable(program, config));
  Stages stages = split_into_stages(program);
  Kernels kernels;
  Kernel& rows = kernels.rows;
  rows.name = program.name;
  rows.simd = config.simd;
  rows.compute = *program.compute;
  rows.launch = {.lanes = config.lanes, .groups = config.groups, .teams = config.teams};
  RowLowering(program, stages, config, rows).run();
  for (std::size_t r : stages.column_results) kernels.column_results.push_back(static_cast<int>(r));
  if (!stages.column_results.empty()) {
    kernels.columns.push_back(lower_columns(program, stages, config, rows.slots));
    rows.slots = kernels.columns[0].slots;
  }
  return kernels;
}

}  // namespace trireme
