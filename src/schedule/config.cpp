#include "schedule/config.hpp"

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/integers.hpp"

namespace trireme {
namespace {

struct Shape {
  int column_sums = 0;
  std::int64_t stored_bytes = 0;  // bytes a column costs in results per element
  std::int64_t widest = 1;        // bytes of the widest array per element
  std::int64_t row_bytes = 0;     // bytes a column costs in the ring: all operands per element
};

Shape shape_of(const Program& program) {
  Shape shape;
  for (const Operand& operand : program.operands) {
    if (operand.constant || !operand.spread.row.present || !operand.spread.column.present) continue;
    std::int64_t size = static_cast<std::int64_t>(bytes(*operand.type));
    shape.widest = std::max(shape.widest, size);
    shape.row_bytes += size;
  }
  for (const Output& result : program.results) {
    if (program[result.value].op == Op::ColumnSum) ++shape.column_sums;
    if (!result.spread.row.present || !result.spread.column.present) continue;
    std::int64_t size = static_cast<std::int64_t>(bytes(*result.type));
    shape.widest = std::max(shape.widest, size);
    shape.stored_bytes += size;
  }
  return shape;
}

bool has_row_sums(const Program& program) {
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && is_row_reduction(program[id].op)) return true;
  return false;
}

Config for_simd(const Program& program, const Machine& machine, const Facts& facts) {
  Config config{.simd = true};
  config.lanes = machine.register_bytes / static_cast<int>(bytes(*program.compute));
  // Short rows are worth code of their own: no loop, no tail, column sums in registers. Beyond 32 vectors the code
  // grows faster than it gains.
  if (goes_lane_by_lane(program, facts.layout)) {
    config.unroll = 2;  // going lane by lane is a loop of its own in every vector
  } else if (facts.columns <= 32 * config.lanes) {
    config.columns = facts.columns;
    config.stripes = std::bit_ceil(static_cast<unsigned>(contract::stripes(facts.columns)));
    config.hoist = true;
    config.reload = true;
  }
  // Ordinary stores read what they overwrite. By a streaming copy's time, rms_norm 4096x4096 from memory: 2.77 with
  // them, 1.61 past the caches and with the next row on its way (docs/performance.md). Rows in unrolled stripes are
  // short, and one sweep reads straight on: there the processor's own prefetching is enough.
  Shape shape = shape_of(program);
  std::int64_t elements = facts.rows * facts.columns;
  bool large = machine.cache_bytes && elements * shape.stored_bytes > machine.cache_bytes;
  config.streaming = large && !facts.in_place;
  config.prefetch = large && !config.stripes && has_row_sums(program);
  return config;
}

// Columns a block keeps in registers (and its ring in shared memory); longer rows take a cluster of blocks, where a
// block has many rows to take. bench/schedules on an H200: one column sum fits 16384 columns a block, two spill there.
// Without column sums a block has one row, and the cluster's barrier is not hidden: 0.47 of a copy at 32768 columns
// against 0.82 in one block, 0.41 at 65536 against 0.67 in loops.
std::int64_t columns_of_a_block(const Shape& shape, const Machine& machine) {
  bool fits = 2 * 16384 * shape.row_bytes + 4096 <= machine.shared_bytes;
  return shape.column_sums == 1 && fits ? 16384 : 8192;
}

Config for_threads(const Program& program, const Machine& machine, const Facts& facts) {
  Config config{.simd = false, .lanes = 32, .columns = facts.columns, .streaming = true};
  Shape shape = shape_of(program);
  config.vector = static_cast<int>(std::clamp<std::int64_t>(facts.alignment, 1, 16 / shape.widest));
  std::int64_t stripes = contract::stripes(facts.columns);
  auto power = [](std::int64_t value) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
  };

  std::int64_t each = 1;  // stripes a warp
  if (stripes == 1) {
    // Several short rows a warp: as many lanes as the row has vectors.
    std::int64_t vectors = (facts.columns + config.vector - 1) / config.vector;
    config.lanes = static_cast<int>(std::clamp<std::int64_t>(power(vectors), 4, 32));
  } else if (shape.column_sums == 0) {
    each = std::min<std::int64_t>(4, power(stripes));  // the part across warps is paid by few
  } else {
    each = stripes <= (shape.column_sums == 1 ? 4 : 2) ? power(stripes) : 2;
  }
  std::int64_t block_stripes = columns_of_a_block(shape, machine) / contract::stripe;
  std::int64_t cluster = 1;
  if (shape.column_sums > 0 && stripes > block_stripes) {
    each = std::max<std::int64_t>(each, block_stripes / 16);
    cluster = std::min<std::int64_t>(8, power((stripes + block_stripes - 1) / block_stripes));
  }
  std::int64_t groups = (stripes + each * cluster - 1) / (each * cluster);
  if (cluster > 1) groups = power(groups);
  if (groups > 32 || (cluster > 1 && !machine.clusters)) {
    config.groups = 32;  // in loops, the row read once a sweep
    return config;
  }
  config.stripes = static_cast<int>(each);
  config.groups = static_cast<int>(groups);
  config.cluster = static_cast<int>(cluster);
  config.teams = groups * cluster == 1 ? 128 / config.lanes : 1;
  config.hoist = shape.column_sums > 0 || each <= 2;
  if (shape.column_sums > 0 && stripes > 1) {
    std::int64_t row = groups * each * contract::stripe * shape.row_bytes * config.teams;
    config.ring = static_cast<int>(std::min<std::int64_t>(2, (machine.shared_bytes - 4096) / row));
    if (config.ring < 2) config.ring = 0;
    config.reload = config.ring > 0 && each >= 4;  // fewer stripes fit in registers until the second sweep
  }
  return config;
}

}  // namespace

bool goes_lane_by_lane(const Program& program, const Layout& layout) {
  if (layout.strided()) return true;
  for (const Operand& operand : program.operands)
    if (!operand.constant && !operand.spread.column.plain()) return true;
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && (program[id].op == Op::Rotate || compares_integers(program, program[id]))) return true;
  return false;
}

Config choose_config(const Program& program, const Machine& machine, const Facts& facts) {
  Config config = machine.simd ? for_simd(program, machine, facts) : for_threads(program, machine, facts);
  config.layout = facts.layout;
  return config;
}

}  // namespace trireme
