#include "schedule/tiling.hpp"

#include <bit>

#include "ir/contract.hpp"
#include "schedule/nodes.hpp"
#include "schedule/stages.hpp"

namespace trireme {

std::optional<Tiling> tiling_of(const Program& program, const Layout& layout, std::int64_t columns) {
  if (layout.strided() || layout.jumps() || layout.backwards()) return std::nullopt;
  for (const Output& result : program.results)
    if (result.value == no_node || is_column_reduction(program[result.value].op) || !result.spread.row.present ||
        !result.spread.row.plain() || result.spread.column.present)
      return std::nullopt;
  const std::vector<bool> used = reachable(program), varies = varying_by_row(program);
  Tiling tiling{.depends = std::vector<int>(program.size())};
  int kinds = 0;
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (!used[id]) continue;
    if (!is_plain_value(program, node)) return std::nullopt;
    for (NodeId arg : node) {  // what a row has one of stands around its sums, not in them
      if ((node.by_column || is_row_reduction(node.op)) && !program[arg].by_column && varies[arg]) return std::nullopt;
      tiling.depends[id] |= tiling.depends[arg];
    }
    if (node.op != Op::Operand) continue;
    const Spread& spread = program.operands[node.payload].spread;
    if (spread.row.picked() || (spread.column.present && !spread.column.plain())) return std::nullopt;
    const Result<AxisIndexing> row = fixed_axis(program, spread.row, columns);
    if (!row) return std::nullopt;
    if (spread.column.present) tiling.loads.push_back(id);
    if (!row->present) continue;
    tiling.row[static_cast<std::size_t>(node.payload)] = *row;
    if (!spread.column.present) continue;
    const std::int64_t own = row->wrap ? row->wrap : row->divide;
    if (own == 1 || (row->wrap && row->divide > 1) || (tiling.m && tiling.m != own)) return std::nullopt;
    tiling.m = own;
    kinds |= tiling.depends[id] = row->wrap ? Tiling::on_remainder : Tiling::on_quotient;
  }
  int sweeps = 0;
  for (const Stage& stage : split_into_stages(program).sweeps) {
    if (!stage.reduces()) continue;
    tiling.reductions = stage.reductions;
    ++sweeps;
  }
  if (sweeps != 1 || kinds != (Tiling::on_quotient | Tiling::on_remainder)) return std::nullopt;
  return tiling;
}

std::optional<std::int64_t> tiled_by(const Program& program, const Layout& layout, std::int64_t columns) {
  const std::optional<Tiling> tiling = tiling_of(program, layout, columns);
  return tiling ? std::optional(tiling->m) : std::nullopt;
}

std::vector<Tiling::Cell> TileSides::cells() const {
  std::vector<Tiling::Cell> cells;
  for (int q = 0; q < quotients; ++q)
    for (int r = 0; r < remainders; ++r) cells.push_back({q, r});
  return cells;
}

TileSides tile_sides(int sums) {
  const int bits = std::countr_zero(static_cast<unsigned>(sums));
  return {1 << bits / 2, 1 << (bits + 1) / 2};
}

std::int64_t tile_scratch_bytes(const Config& config, std::int64_t value_bytes, std::int64_t reductions) {
  const std::int64_t stripes = contract::stripes(config.columns);
  if (!config.simd && stripes == 1) return 0;
  return stripes * reductions * config.lanes * (config.simd ? 1 : config.groups) * value_bytes;
}

}  // namespace trireme
