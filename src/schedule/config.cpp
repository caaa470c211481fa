#include "schedule/config.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/integers.hpp"
#include "schedule/choose.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/valid.hpp"

namespace trireme {

namespace {

// In whole registers lanes have one entry; registers have up to 16.
bool has_whole_registers(const Program& program, const Axis& axis) {
  if (axis.divide == no_node || axis.wrap != no_node) return false;
  return std::fmod(as_number(program, axis.divide).value_or(1), 16) == 0;
}

// Groups that no power of two of columns has are stored one by one (RowLowering::stored_by_entry).
bool goes_by_entries(const Program& program, const Axis& axis) {
  const auto by = static_cast<std::uint64_t>(as_number(program, axis.divide).value_or(1));
  return axis.wrap == no_node && !std::has_single_bit(by);
}

// Which lanes have a group's entry is then to be found out.
bool scatters_groups(const Program& program) {
  return std::any_of(program.results.begin(), program.results.end(), [&](const Output& result) {
    return result.value != no_node && !is_column_reduction(program[result.value].op) &&
           result.spread.column.divide != no_node && !has_whole_registers(program, result.spread.column) &&
           !goes_by_entries(program, result.spread.column);
  });
}

// Of operands' and rotations' columns: each(axis, columns further on), until one answers yes.
template <typename Each>
bool any_map(const Program& program, Each&& each) {
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!used[id] || program[id].op != Op::Rotate) continue;
    const Node& inner = program[program[id].args[0]];
    const Axis axis = inner.op == Op::Operand ? program.operands[inner.payload].spread.column : Axis{.present = true};
    if (each(axis, static_cast<std::int64_t>(program[program[id].args[1]].number()))) return true;
  }
  return std::any_of(program.operands.begin(), program.operands.end(), [&](const Operand& operand) {
    return !operand.constant && !operand.spread.column.plain() && each(operand.spread.column, 0);
  });
}

}  // namespace

bool maps_columns(const Program& program) {
  if (scatters_groups(program)) return true;
  if (any_map(program,
              [&](const Axis& axis, std::int64_t rotate) { return rotate || !has_whole_registers(program, axis); }))
    return true;
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] && program[id].by_column && compares_integers(program, program[id])) return true;
  return false;
}

bool goes_lane_by_lane(const Program& program, const Layout& layout, std::int64_t columns, int lanes) {
  if (layout.strided() || scatters_groups(program)) return true;
  if (any_map(program, [&](const Axis& of, std::int64_t rotate) {
        const Result<AxisIndexing> axis = fixed_axis(program, of, columns);
        if (!axis) return true;
        const bool whole = rotates_whole_vectors(rotate, columns, lanes);
        if (axis->divide == 1) return !whole || axis->wrap % lanes != 0;
        return !(whole && axis->divide % lanes == 0) && (rotate || axis->divide < lanes);
      }))
    return true;
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (!used[id]) continue;
    auto is_column = [&](NodeId arg) {
      const Node& inner = program[program[arg].op == Op::Rotate ? program[arg].args[0] : arg];
      if (inner.op != Op::ColumnIndex || program[arg].op != Op::Rotate) return inner.op == Op::ColumnIndex;
      const auto rotate = static_cast<std::int64_t>(program[program[arg].args[1]].number());
      return rotates_whole_vectors(rotate, columns, lanes);
    };
    if (node.op == Op::Rotate && program[node.args[0]].op != Op::Operand && !is_column(id)) return true;
    if (!node.by_column || !compares_integers(program, node)) continue;
    auto varies = [&](NodeId arg) { return program[arg].by_column && !is_column(arg); };
    const NodeId a = node.args[0], b = node.args[1];
    if (varies(a) || varies(b) || (is_column(a) && is_column(b))) return true;
  }
  return false;
}

Config choose_config(const Program& given, const Machine& machine, const Facts& facts) {
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  Config config = machine.simd ? choose_for_simd(program, machine, facts) : choose_for_threads(program, machine, facts);
  config.layout = facts.layout;
  config.group = machine.simd ? 0 : group_of_stripes(program, facts.columns);
  return config;
}

Result<Config> config_for(const Program& program, const Machine& machine, const Facts& facts) {
  if (!facts.config) return choose_config(program, machine, facts);
  Config config = *facts.config;
  config.layout = facts.layout;
  if (!config.across && fixes_columns(program)) config.columns = facts.columns;
  TRIREME_CHECK(valid(program, config, machine, facts));
  return config;
}

}  // namespace trireme
