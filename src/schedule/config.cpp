#include "schedule/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/integers.hpp"

namespace trireme {
namespace {

struct Shape {
  bool column_sums = false;
  std::int64_t widest = 1;     // bytes of the widest array per element
  std::int64_t row_bytes = 0;  // bytes a column costs in the ring: all operands per element
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
    if (program[result.value].op == Op::ColumnSum) shape.column_sums = true;
    if (result.spread.row.present && result.spread.column.present)
      shape.widest = std::max(shape.widest, static_cast<std::int64_t>(bytes(*result.type)));
  }
  return shape;
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
  return config;
}

Config for_threads(const Program& program, const Machine& machine, const Facts& facts) {
  Config config{.simd = false, .lanes = 32, .columns = facts.columns, .streaming = true};
  Shape shape = shape_of(program);
  config.vector = static_cast<int>(std::clamp<std::int64_t>(facts.alignment, 1, 16 / shape.widest));
  std::int64_t stripes = contract::stripes(facts.columns);
  if (stripes == 1) {
    // Several short rows a warp: as many lanes as the row has vectors.
    std::int64_t vectors = (facts.columns + config.vector - 1) / config.vector;
    config.lanes =
        static_cast<int>(std::clamp<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(vectors)), 4, 32));
    config.stripes = 1;
    config.teams = 128 / config.lanes;
  } else {
    // Forward: 4 stripes a warp, so that the part across warps is paid by few (bench/gpu.sh: 0.95 - 1.00 of a copy from
    // 1024 to 16384 columns). Column sums take registers too: 1 stripe a warp up to 8192 columns.
    std::int64_t each = shape.column_sums
                            ? (stripes <= 32 ? 1 : 4)
                            : std::min<std::int64_t>(4, std::bit_ceil(static_cast<std::uint64_t>(stripes)));
    std::int64_t groups = (stripes + each - 1) / each;
    if (groups <= 32) {
      config.stripes = static_cast<int>(each);
      config.groups = static_cast<int>(groups);
      config.teams = config.groups == 1 ? 4 : 1;
    } else {
      config.groups = 32;  // loops
    }
  }
  config.hoist = config.stripes && (shape.column_sums || config.stripes <= 2);
  config.reload = shape.column_sums;
  if (shape.column_sums && config.stripes) {
    std::int64_t row =
        static_cast<std::int64_t>(config.groups) * config.stripes * contract::stripe * shape.row_bytes * config.teams;
    std::int64_t room = machine.shared_bytes - 4096;
    config.ring = static_cast<int>(std::min<std::int64_t>(row <= 16384 ? 4 : 3, room / row));
    if (config.ring < 2) config.ring = 0;
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

std::string print(const Config& config) {
  std::string text = fmt::format("{} lanes={}", config.simd ? "simd" : "threads", config.lanes);
  if (config.vector != 1) text += fmt::format(" vector={}", config.vector);
  if (config.groups != 1) text += fmt::format(" groups={}", config.groups);
  if (config.teams != 1) text += fmt::format(" teams={}", config.teams);
  if (config.columns) text += fmt::format(" columns={}", config.columns);
  if (config.stripes) text += fmt::format(" stripes={}", config.stripes);
  if (config.simd && !config.stripes) text += fmt::format(" unroll={}", config.unroll);
  if (config.ring) text += fmt::format(" ring={}", config.ring);
  if (config.reload) text += " reload";
  if (config.hoist) text += " hoist";
  if (config.streaming) text += " streaming";
  if (config.layout.strided()) text += " strided";
  return text;
}

}  // namespace trireme
