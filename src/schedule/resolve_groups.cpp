#include "schedule/resolve_groups.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "ir/index_arithmetic.hpp"
#include "ir/rewrite.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {
namespace {

bool is_power(std::int64_t value) { return std::has_single_bit(static_cast<std::uint64_t>(value)); }

// `rotated`: its value is read at other columns, and stays a leaf.
NodeId resolved(Program& out, const Node& node, NodeId value, std::int64_t by, std::int64_t columns, bool rotated) {
  const GroupReduction kind = group_of(node);
  const std::int64_t groups = group_count(columns, by, kind.wraps);
  const bool one = as_number(out, value) == 1.0 && kind.op == Op::Sum && columns <= 1 << 24;
  if (kind.entries) {
    if (one) return out.number(static_cast<double>(groups));
    if (groups == columns) return out.add(kind.op, {value});
  } else {
    if (one && columns % by == 0) return out.number(static_cast<double>(kind.wraps ? columns / by : by));
    if (groups == 1) return out.add(kind.op, {value});
    if (groups == columns && !rotated) return value;
  }
  return add_group(out, kind, value, out.number(static_cast<double>(by)));
}

}  // namespace

const Program& resolve_groups(const Program& program, std::int64_t columns, std::optional<Program>& made) {
  if (!columns || !has(program, Op::Group)) return program;
  std::vector<bool> rotated(program.size());
  for (NodeId id = 0; id < program.size(); ++id)
    if (program[id].op == Op::Rotate) rotated[program[id].args[0]] = true;
  return made.emplace(rewrite(program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    if (node.op == Op::Rotate && !out[args[0]].by_column) return args[0];
    if (node.op != Op::Group) return copy_node(out, node, args);
    const auto by = index_value(program, node.args[1], {columns}, a_divisor);
    if (!by || !*by) return copy_node(out, node, args);
    const auto id = static_cast<std::size_t>(&node - &program[0]);
    return resolved(out, node, args[0], std::min(**by, columns), columns, rotated[id]);
  }));
}

std::int64_t group_of_stripes(const Program& program, std::int64_t columns) {
  if (!columns || !has(program, Op::Group)) return 0;
  std::int64_t widest = 0;
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (!used[id]) continue;
    if (is_row_reduction(node.op)) return 0;
    if (node.op != Op::Group || group_of(node).wraps || group_of(node).entries) continue;
    const auto by = index_value(program, node.args[1], {columns}, a_divisor);
    if (by && *by && **by < columns && **by <= contract::stripe && !is_power(**by)) widest = std::max(widest, **by);
  }
  return widest;
}

std::vector<bool> groups_in_chunks(const Program& program, const Config& config) {
  std::vector<bool> in_chunk(program.size());
  const std::int64_t chunk = std::int64_t{config.lanes} * config.vector;
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (node.op == Op::Rotate) in_chunk[node.args[0]] = false;  // read where another chunk has it
    if (node.op != Op::Group || group_of(node).entries) continue;
    const auto by = static_cast<std::int64_t>(as_number(program, node.args[1]).value_or(0));
    if (group_of(node).wraps) {
      in_chunk[id] = is_power(by) && config.columns <= std::min(chunk, config.stripe());
      continue;
    }
    // Several chunks of a stripe stand beside each other in the code of a kernel.
    std::int64_t most = contract::stripe;
    if (config.simd && !config.stripes) most = std::max(chunk, std::int64_t{config.unroll} * config.lanes);
    in_chunk[id] =
        config.group ? by == config.group || (is_power(by) && config.group % by == 0) : is_power(by) && by <= most;
  }
  return in_chunk;
}

Stages stages_on(const Machine& machine, const Program& given, const Facts& facts) {
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  Config narrowest{.simd = false, .lanes = 1, .columns = facts.columns};
  narrowest.group = group_of_stripes(program, facts.columns);
  return split_into_stages(program, facts.layout.over_operands,
                           machine.simd ? std::vector<bool>{} : groups_in_chunks(program, narrowest));
}

int chunks_of_groups(const Program& program, std::int64_t columns, int lanes) {
  std::int64_t most = 1;
  bool sums = false;
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (!used[id]) continue;
    sums = sums || is_row_reduction(node.op);
    if (node.op != Op::Group || group_of(node).wraps || group_of(node).entries) continue;
    const auto by = index_value(program, node.args[1], {columns}, a_divisor);
    if (by && *by && is_power(**by) && **by <= contract::stripe) most = std::max(most, **by / lanes);
  }
  return static_cast<int>(most > 1 && sums ? contract::stripe / lanes : most);
}

}  // namespace trireme
