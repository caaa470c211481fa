#include "schedule/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "schedule/across.hpp"
#include "schedule/lower_columns.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/tiles.hpp"
#include "schedule/valid.hpp"

namespace trireme {

RowLowering::RowLowering(const Program& program, const Stages& stages, const Config& config,
                         const std::vector<SumClass>& sums, Kernel& kernel)
    : program_(program),
      stages_(stages),
      config_(config),
      layout_(config.layout),
      b_(kernel),
      wrapped_(wrapped_groups(program, config)),
      apart_(groups_apart(program, config, wrapped_)) {
  find_sums(sums);
  kept_groups_.resize(program.size());
  for (const Stage& stage : stages.sweeps)
    for (NodeId id : stage.groups) kept_groups_[id] = true;
}

int RowLowering::chunks() const {
  std::int64_t covered = config_.lanes * config_.vector;
  std::int64_t wanted = config_.columns ? std::min(config_.columns, config_.stripe()) : contract::stripe;
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>((wanted + covered - 1) / covered)));
}

bool RowLowering::in_ring(std::size_t operand) const { return ring_operands_.contains(operand); }

// Can what a thread reads of an operand at once be copied to scratch at once?
bool RowLowering::copies_whole(std::size_t k) const {
  const Operand& operand = program_.operands[k];
  if (operand.constant || !operand.spread.column.present || !operand.spread.plain()) return false;
  std::int64_t piece = static_cast<std::int64_t>(bytes(*operand.type)) * config_.vector;
  return !layout_.array(k).strided && (piece == 4 || piece == 8 || piece == 16);
}

// Which columns a thread looks after: group g of a team takes the stripes from g * config.stripes on, so that each
// group's stripes are one subtree of the contract's sum.
void RowLowering::locate_threads() {
  zero_ = b_.index(0);
  one_index_ = b_.index(1);
  columns_ = config_.columns ? b_.index(config_.columns) : b_.slot({Slot::What::Columns});
  state_ = {.limit = columns_};
  if (config_.simd) {
    thread_column_ = block_column_ = zero_;
    return;
  }
  lane_ = b_.special(Do::ThreadLane);
  group_ = b_.special(Do::ThreadGroup);
  team_ = b_.special(Do::ThreadTeam);
  row_owner_ = config_.groups > 1 ? b_.add(b_.mul(group_, config_.lanes), lane_) : lane_;
  locate_columns();
  block_column_ = thread_column_;
  const bool folds = std::any_of(stages_.sweeps.begin(), stages_.sweeps.end(),
                                 [](const Stage& stage) { return !stage.folds.empty(); });
  if (folds && config_.groups * config_.cluster > 1) {
    Reg groups = group_;
    if (config_.cluster > 1) groups = b_.add(b_.mul(b_.special(Do::BlockRank), config_.groups), group_);
    group_column_ = b_.mul(groups, config_.stripes * config_.stripe());
  }
  if (config_.cluster > 1) {
    rank_ = b_.special(Do::BlockRank);
    thread_column_ = b_.add(thread_column_, b_.mul(rank_, config_.groups * config_.stripes * config_.stripe()));
    row_owner_ = b_.add(row_owner_, b_.mul(rank_, config_.groups * config_.lanes));
  }
}

void RowLowering::locate_columns() {
  thread_column_ = b_.mul(lane_, config_.vector);
  if (config_.group) locate_groups();
  if (!config_.stripes || config_.groups == 1) return;
  const Reg first = wrapped_.interleaved == 1 ? group_ : b_.divide(group_, wrapped_.interleaved);
  if (wrapped_.interleaved < config_.groups)
    thread_column_ = b_.add(thread_column_, b_.mul(first, config_.stripes * stripe_step()));
  if (wrapped_.interleaved == 1) return;
  const Reg turn = b_.remainder(group_, wrapped_.interleaved);
  thread_column_ = b_.add(thread_column_, b_.mul(turn, config_.stripe()));
}

// Groups of columns in place of stripes: each has a power of two of a warp's columns, and begins with them; or a
// warp's columns are part of a group.
void RowLowering::locate_groups() {
  const auto place = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(config_.group)));
  if (const std::int64_t rest = config_.group % chunk_columns(); place > chunk_columns()) {
    column_of_group_ = thread_column_;
    if (rest) in_stripe_ = b_.below(column_of_group_, 0, b_.index(rest));
    return;
  }
  column_of_group_ = b_.remainder(thread_column_, place);
  in_stripe_ = b_.below(column_of_group_, 0, b_.index(config_.group));
  thread_column_ = b_.add(b_.mul(b_.divide(thread_column_, place), config_.group), column_of_group_);
}

// Do all groups have the columns of such a chunk of theirs, in its stripe?
bool RowLowering::always_inside(std::int64_t offset) const {
  if (!config_.columns) return false;
  const std::int64_t groups = std::int64_t{config_.cluster} * config_.groups;
  const std::int64_t last_group =
      ((groups - wrapped_.interleaved) * config_.stripes + wrapped_.interleaved - 1) * config_.stripe();
  return last_group + offset + std::min(chunk_columns(), left_in_stripe(offset)) <= config_.columns;
}

Reg RowLowering::mask_of(const Leaf& leaf) {
  return both(leaf.limit ? b_.below(leaf.column, leaf.offset, leaf.limit) : Reg{}, in_stripe(leaf.offset));
}

// Chunk `c` of a group's unrolled stripe; its id is -1 where no group has such columns.
Leaf RowLowering::unrolled_leaf(int stripe, int c, const RowState& row) {
  Leaf leaf;
  const std::int64_t inside = c * chunk_columns();
  leaf.offset = stripe * stripe_step() + inside;
  if (inside >= config_.stripe() || leaf.offset >= config_.columns) return leaf;
  leaf.id = stripe * chunks() + c;
  leaf.column = thread_column_;
  const bool always = always_inside(leaf.offset);
  const Reg in_stripe = this->in_stripe(leaf.offset);
  leaf.partial = !always || in_stripe;
  leaf.mask = both(always ? row.exists : b_.below(thread_column_, leaf.offset, row.limit), in_stripe);
  return leaf;
}

void RowLowering::lay_out_scratch() {
  std::int64_t at = lay_out_groups();
  std::size_t reductions = 0, sweeps = 0;
  for (const Stage& stage : stages_.sweeps) {
    reductions = std::max(reductions, stage.totals());
    sweeps += stage.reduces();
  }
  std::int64_t count = static_cast<std::int64_t>(reductions);
  const bool vectors_anywhere = !apart_.groups.empty() && maps_columns(program_);
  if (config_.simd && (vectors_anywhere || goes_lane_by_lane(program_, layout_, config_.columns, config_.lanes))) {
    lanes_at_ = at;
    at += config_.lanes * value_bytes();
  }
  if (config_.stripes) {
    if (config_.groups * config_.cluster > 1) {
      const std::int64_t begin = at;
      for (const Stage& stage : stages_.sweeps) {
        sums_at_.push_back(at);
        at += static_cast<std::int64_t>(stage.totals()) * config_.groups * config_.cluster * value_bytes();
        if (config_.cluster == 1) continue;
        mailboxes_at_.push_back(at = (at + 7) / 8 * 8);
        at += 8;
      }
      // With one barrier a row a slow group may still read what a fast one writes for the next row: two buffers. With
      // two barriers a row nobody can be that late.
      if (sweeps == 1) parity_bytes_ = at - begin, at += parity_bytes_;
    }
    if (config_.ring) {
      at = (at + 15) / 16 * 16;
      std::int64_t covered =
          static_cast<std::int64_t>(config_.groups) * config_.stripes * chunks() * config_.lanes * config_.vector;
      for (std::size_t k : used_operands()) {
        if (!copies_whole(k)) continue;
        std::int64_t size = static_cast<std::int64_t>(bytes(*program_.operands[k].type));
        if (program_.operands[k].spread.row.present) {
          ring_operands_[k] = ring_slot_bytes_;
          ring_slot_bytes_ += covered * size;
        } else if (config_.stage) {
          staged_operands_[k] = at;
          at += covered * size;
        }
      }
      ring_at_ = at;
      at += ring_slot_bytes_ * config_.ring * config_.teams;
    }
  } else {
    std::int64_t vector_bytes = config_.lanes * value_bytes();
    if (config_.simd) {
      spill_at_ = at;
      at += count * chunks() * vector_bytes;
      totals_at_ = at;
      std::int64_t kept = static_cast<std::int64_t>(kept_.size());
      b_.kernel().scratch_bytes_per_stripe = (count + kept * contract::stripe) * value_bytes();
      at += vector_bytes;  // the last group of totals is loaded as a whole vector
      if (kept) at += line_bytes;
    } else {
      totals_at_ = at;
      at += count * 2 * config_.stripes_of_row() * value_bytes();
    }
  }
  b_.kernel().scratch_bytes = at;
  if (config_.simd && at > 0) b_.slot_number({Slot::What::Pointer, scratch_array});
  if (b_.kernel().scratch_bytes_per_stripe > 0) b_.slot_number({Slot::What::Columns});  // whoever lends it asks
}

void RowLowering::run() {
  plan_work();
  overlap_ = config_.overlap && can_overlap();
  locate_threads();
  locate_apart();
  lay_out_scratch();
  place_terms();
  if (!config_.stripes && !config_.simd && config_.group) stripes_ = b_.index(config_.stripes_of_row());
  else if (!config_.stripes)
    stripes_ = b_.index(Do::IndexShiftRight, b_.add(columns_, contract::stripe - 1),
                        std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  if (!config_.stripes && !kept_.empty()) {  // after the totals, at a line
    std::int64_t row_bytes = contract::stripe * value_bytes();
    std::int64_t totals = b_.kernel().scratch_bytes_per_stripe - static_cast<std::int64_t>(kept_.size()) * row_bytes;
    Reg at = b_.add(b_.mul(stripes_, totals), b_.kernel().scratch_bytes - 1);
    at = b_.index(Do::IndexAnd, at, -line_bytes);
    for (Kept& each : kept_) {
      each.at = at;
      at = b_.add(at, b_.mul(stripes_, row_bytes));
    }
  }
  if (by_entries()) begin_block();
  for (std::size_t k = 0; k < program_.operands.size(); ++k) {
    const Operand& operand = program_.operands[k];
    if (operand.constant || !operand.spread.column.present || (operand.spread.row.present && !same_in_block(k)))
      continue;
    Reg pointer = column_pointers_[k] = b_.pointer_to(k);
    if (!operand.spread.row.present) continue;
    const Reg place = b_.index(Do::IndexMul, entry_, b_.slot_of(k, Slot::What::Stride));
    column_pointers_[k] = b_.pointer(pointer, place, static_cast<std::int64_t>(bytes(*operand.type)));
  }
  evaluate_divisors();
  b_.note("values of the whole kernel");
  evaluate_whole();
  if (config_.stripes) {
    int leaves = config_.stripes * chunks();
    row_leaves_.resize(leaves);
    all_leaves_.resize(leaves);
    if (config_.hoist) hoist_columns();
    if (config_.stage) stage_columns();
  }
  if (parity_bytes_) parity_ = b_.copy(zero_);
  if (config_.cluster > 1 && stages_.reduces()) open_mailboxes();
  walk_blocks();
}

namespace {

Kernel new_kernel(const Program& program, const Config& config, const Stages& stages, std::string name,
                  bool with_names) {
  Kernel rows;
  rows.with_names = with_names;
  rows.name = std::move(name);
  rows.simd = config.simd;
  rows.compute = *program.compute;
  rows.operands = static_cast<int>(program.operands.size());
  rows.launch = {.lanes = config.lanes, .groups = config.groups, .teams = config.teams};
  rows.launch.cluster = config.cluster;
  rows.launch.resident = config.resident;
  rows.launch.meets = config.cluster > 1 && stages.reduces();
  rows.launch.rows = config.simd ? 1 : config.rows;
  return rows;
}

// Rows that do not follow each other by one stride have none on their way.
bool in_pieces(const AxisIndexing& row, const Layout& layout) { return row.wrap && (row.divide > 1 || layout.jumps()); }

// One kernel over rows; on thread machines its blocks are those of class `sums`, if any.
Kernel lower_rows(const Program& program, Config config, const std::vector<SumClass>& classes, int sums,
                  std::string name, std::vector<Slot> slots, bool with_names) {
  if (sums >= 0 && in_pieces(classes[sums].where.row, config.layout)) {
    config.hoist |= config.stage;
    config.ring = 0, config.stage = false;
  }
  const Stages stages = split_into_stages(program, config.layout.over_operands, groups_in_chunks(program, config));
  Kernel kernel = new_kernel(program, config, stages, std::move(name), with_names);
  kernel.slots = std::move(slots);
  kernel.launch.sums = sums;
  RowLowering(program, stages, config, classes, kernel).run();
  return kernel;
}

}  // namespace

Result<Kernels> lower(const Program& given, Config config, bool with_names) {
  std::optional<Program> summed, rest, resolved;
  const Program& program = resolve_groups(with_row_sums(given, summed), config.columns, resolved);
  config.group = config.simd ? 0 : group_of_stripes(program, config.columns);
  Stages stages = split_into_stages(program, config.layout.over_operands, groups_in_chunks(program, config));
  TRIREME_CHECK(lowerable(program, config, stages));
  Kernels kernels;
  TRIREME_TRY(classes, sum_classes(program, config.columns));
  kernels.sums = std::move(classes);
  auto by_blocks = [&](std::size_t c) { return c < kernels.sums.size() && kernels.sums[c].by_blocks(); };
  if (config.across) {
    kernels.rows = new_kernel(program, config, stages, program.name, with_names);
    lower_across(program, config, kernels.rows);
  } else if (config.tile) {
    kernels.rows = new_kernel(program, config, stages, program.name, with_names);
    lower_tiles(program, config, kernels.rows);
  } else if (config.simd) {
    kernels.rows = lower_rows(program, config, kernels.sums, -1, program.name, {}, with_names);
  } else {
    // One class has the rows that are written beside; the others have kernels of their own.
    const std::optional<std::size_t> walked = walked_class(kernels.sums);
    if (walked) kernels.sums[*walked].in_teams = config.entries;
    std::vector<Slot> slots;
    for (std::size_t c = 0; by_blocks(c); ++c) {
      if (c == *walked) continue;
      rest = leave_out(rest ? *rest : program, kernels.sums[c]);
      kernels.before.push_back(lower_rows(keep_only(program, kernels.sums[c]), config, kernels.sums,
                                          static_cast<int>(c), fmt::format("{}_sums_{}", program.name, c), slots,
                                          with_names));
      slots = kernels.before.back().slots;
    }
    kernels.rows = lower_rows(rest ? *rest : program, config, kernels.sums, walked ? static_cast<int>(*walked) : -1,
                              program.name, std::move(slots), with_names);
  }
  kernels.columns = lower_columns(program, kernels.sums, config, kernels.rows.slots);
  if (!kernels.columns.empty()) kernels.rows.slots = kernels.columns.back().slots;
  for (auto* list : {&kernels.before, &kernels.columns})
    for (Kernel& each : *list) each.slots = kernels.rows.slots;
  return kernels;
}

Result<Lowered> lower_for(const Program& program, const Machine& machine, const Facts& facts, bool with_names) {
  TRIREME_TRY(config, config_for(program, machine, facts));
  TRIREME_TRY(kernels, lower(program, config, with_names));
  return Lowered{std::move(config), std::move(kernels)};
}

std::string print(const Lowered& lowered) {
  std::string text = fmt::format("config: {}\n\n{}", print(lowered.config), print(lowered.kernels.rows));
  for (auto* list : {&lowered.kernels.before, &lowered.kernels.columns})
    for (const Kernel& kernel : *list) text += "\n" + print(kernel);
  return text;
}

}  // namespace trireme
