// What of a program schedules are chosen by.
#pragma once
#include <algorithm>
#include <bit>
#include <optional>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "schedule/config.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/stages.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/tiling.hpp"

namespace trireme {

inline std::int64_t next_power(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

// Of a stripe, or of a row that is shorter.
inline std::int64_t chunks_of(const Config& config) {
  const std::int64_t chunk = std::int64_t{config.lanes} * config.vector;
  return next_power((std::min(config.columns, config.stripe()) + chunk - 1) / chunk);
}

struct Shape {
  int column_sums = 0;
  std::int64_t column_bytes = 0;      // bytes a column costs in operands per column: weights, biases
  std::int64_t widest_column = 1;     // bytes of the widest of those
  int reductions = 0;                 // sweeps that end with one
  int row_sums = 0;                   // sums, maxima and minima of those
  int rotations = 0;                  // of values per element
  int odd_columns = 0;                // operands whose columns are divided or wrapped
  std::int64_t stored_bytes = 0;      // bytes a column costs in results per element
  std::int64_t narrowest_stored = 8;  // bytes of the narrowest of those
  std::int64_t widest = 1;            // bytes of the widest array per element
  std::int64_t value_bytes = 4;       // of the type it computes in
  std::int64_t row_bytes = 0;         // bytes a column costs in operands per element that are read
  std::int64_t ring_bytes = 0;        // of those, in operands that a ring can hold: indexed plainly

  // Elements of 16 bytes at most, as the arrays lie; in rows of several stripes a warp's lie in one of them.
  int widest_vector(const Facts& facts, std::int64_t group) const {
    const std::int64_t most = facts.columns > contract::stripe || group ? contract::stripe / 32 : 16;
    const std::int64_t aligned = group ? std::min(facts.alignment, group & -group) : facts.alignment;
    return static_cast<int>(std::clamp<std::int64_t>(aligned, 1, std::min(16 / widest, most)));
  }

  // Of a thread machine's block, at most: what RowLowering lays out with as many sums in each sweep as there are in
  // all, and all operands that can be in the ring. Terms of groups come on top (machine_for).
  std::int64_t shared_bytes(const Config& c) const {
    if (c.tile) return tile_scratch_bytes(c, value_bytes, row_sums);
    if (!c.stripes) return 2 * row_sums * c.stripes_of_row() * value_bytes;
    const std::int64_t columns = std::int64_t{c.groups} * c.stripes * chunks_of(c) * c.lanes * c.vector;
    const std::int64_t sums =
        c.groups * c.cluster > 1 ? row_sums * c.groups * c.cluster * value_bytes + 16 * reductions : 0;
    return sums * (reductions == 1 ? 2 : 1) + 16 + c.ring * columns * ring_bytes * c.teams +
           (c.stage ? columns * column_bytes : 0);
  }
};

inline Shape shape_of(const Program& given, const Layout& layout) {
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  Shape shape;
  shape.value_bytes = static_cast<std::int64_t>(bytes(*program.compute));
  std::vector<bool> read = read_operands(program);
  for (std::size_t k = 0; k < program.operands.size(); ++k) {
    const Operand& operand = program.operands[k];
    if (operand.constant || !operand.spread.column.present || !read[k]) continue;
    shape.odd_columns += !operand.spread.column.plain();
    std::int64_t size = static_cast<std::int64_t>(bytes(*operand.type));
    // One row of it for all rows of a block: as weights are.
    const Axis& row = operand.spread.row;
    auto blocks_by = [&](const Output& result) {
      const Axis& other = result.spread.row;
      return !row.plain() && is_column_reduction(program[result.value].op) && other.divide == row.divide &&
             other.wrap == row.wrap;
    };
    if (!row.present || std::any_of(program.results.begin(), program.results.end(), blocks_by)) {
      shape.column_bytes += size;
      shape.widest_column = std::max(shape.widest_column, size);
      continue;
    }
    shape.widest = std::max(shape.widest, size);
    shape.row_bytes += size;
    if (operand.spread.plain()) shape.ring_bytes += size;
  }
  for (const Output& result : program.results) {
    if (is_column_reduction(program[result.value].op)) {
      shape.column_sums +=
          (result.spread.row.present || result.spread.column.present) && !sums_own_row(program, result);
      continue;
    }
    if (!result.spread.row.present || !result.spread.column.present || is_group(result.spread.column)) continue;
    std::int64_t size = static_cast<std::int64_t>(bytes(*result.type));
    shape.widest = std::max(shape.widest, size);
    shape.stored_bytes += size;
    shape.narrowest_stored = std::min(shape.narrowest_stored, size);
  }
  for (const Stage& stage : split_into_stages(program, layout.over_operands).sweeps) {
    shape.reductions += stage.reduces() || !stage.group_sums.empty() || !stage.groups.empty();
    shape.row_sums += static_cast<int>(stage.totals() + stage.group_sums.size() + stage.groups.size());
  }
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) shape.rotations += used[id] && program[id].op == Op::Rotate;
  return shape;
}

// Groups of columns that are not in registers are summed by one block, and their terms take a part of its scratch.
inline Machine machine_for(const Program& program, const Machine& machine, const Facts& facts) {
  Machine left = machine;
  if (!stages_on(machine, program, facts).sums_groups()) return left;
  left.clusters = false;
  left.shared_bytes = std::max<std::int64_t>(0, left.shared_bytes - most_group_bytes);
  return left;
}

// From so many rows on a batch fills the machine, whatever its schedule.
inline std::int64_t many_rows(const Machine& machine) { return 16 * machine.processors; }

}  // namespace trireme
