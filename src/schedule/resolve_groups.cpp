#include "schedule/resolve_groups.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "ir/index_arithmetic.hpp"
#include "ir/integers.hpp"
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
  struct Sizes {
    std::int64_t odd = 0, power = 0;  // the largest: no power of two, or one
  } neighbours, wrapped;
  const std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (!used[id]) continue;
    if (is_row_reduction(node.op)) return 0;
    if (node.op != Op::Group || group_of(node).entries) continue;
    const auto by = index_value(program, node.args[1], {columns}, a_divisor);
    if (!by || !*by || **by >= columns || **by > contract::stripe) continue;
    Sizes& sizes = group_of(node).wraps ? wrapped : neighbours;
    std::int64_t& largest = is_power(**by) ? sizes.power : sizes.odd;
    largest = std::max(largest, **by);
  }
  if (neighbours.odd || (!wrapped.odd && !wrapped.power)) return neighbours.odd;
  if (wrapped.odd) return neighbours.power && wrapped.odd % neighbours.power ? 0 : wrapped.odd;
  if (columns <= contract::stripe) return 0;  // a chunk or two
  constexpr std::int64_t widest_vector = 16;  // which a group is not to cut
  return std::max({wrapped.power, neighbours.power, widest_vector});
}

std::vector<NodeId> groups_below(const Program& program, NodeId root) {
  std::vector<bool> wanted(root + 1);
  std::vector<NodeId> groups;
  wanted[root] = true;
  for (NodeId id = root + 1; id-- > 0;) {
    const Node& node = program[id];
    if (!wanted[id] || !node.by_column || node.op == Op::Rotate || compares_integers(program, node)) continue;
    if (node.op == Op::Group) groups.push_back(id);
    else
      for (NodeId arg : node) wanted[arg] = true;
  }
  return groups;
}

std::vector<bool> groups_in_chunks(const Program& program, const Config& config) {
  std::vector<bool> in_chunk(program.size());
  const std::int64_t chunk = std::int64_t{config.lanes} * config.vector;
  auto by_of = [&](NodeId id) {
    return static_cast<std::int64_t>(as_number(program, program[id].args[1]).value_or(0));
  };
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (node.op == Op::Rotate) in_chunk[node.args[0]] = false;  // read where another chunk has it
    if (node.op != Op::Group || group_of(node).entries) continue;
    const std::int64_t by = by_of(id);
    if (group_of(node).wraps) {
      const std::int64_t row = config.simd && config.stripes ? contract::stripe : std::min(chunk, config.stripe());
      in_chunk[id] = is_power(by) && config.columns <= row;
      continue;
    }
    // Several chunks of a stripe stand beside each other in the code of a kernel.
    std::int64_t most = contract::stripe;
    if (config.simd && !config.stripes) most = std::max(chunk, std::int64_t{config.unroll} * config.lanes);
    in_chunk[id] =
        config.group ? by == config.group || (is_power(by) && config.group % by == 0) : is_power(by) && by <= most;
  }
  if (!config.simd) return in_chunk;
  // Groups of another layout want what they are made of at columns of their own.
  std::vector<bool> apart = in_chunk;
  const std::vector<bool> used = reachable(program);
  for (NodeId id = static_cast<NodeId>(program.size()); id-- > 0;)
    if (used[id] && program[id].op == Op::Group && !apart[id] && !group_of(program[id]).entries &&
        by_of(id) <= contract::stripe)
      for (NodeId inner : groups_below(program, program[id].args[0])) apart[inner] = false;
  return are_rematerialised(program, config, apart) ? apart : in_chunk;
}

bool are_rematerialised(const Program& program, const Config& config, const std::vector<bool>& in_chunk) {
  constexpr std::int64_t most_instructions = 2000, most_registers = 16;  // of a tree, at once
  const std::vector<bool> used = reachable(program);
  std::int64_t all = 0;
  for (NodeId group = 0; group < program.size(); ++group) {
    const Node& node = program[group];
    if (!used[group] || node.op != Op::Group || in_chunk[group] || group_of(node).entries) continue;
    const auto by = static_cast<std::int64_t>(as_number(program, node.args[1]).value_or(0));
    if (by < 2 || by > contract::stripe) continue;
    const std::int64_t registers = group_of(node).wraps ? config.columns / by : by / config.lanes + 1;
    std::vector<bool> wanted(program.size());
    wanted[node.args[0]] = true;
    std::int64_t values = 0;
    for (NodeId id = group; id-- > 0;) {
      if (!wanted[id] || !program[id].by_column) continue;
      ++values;
      if (program[id].op != Op::Group)
        for (NodeId arg : program[id]) wanted[arg] = true;
    }
    all += std::min(registers, most_registers) * values;
  }
  return all <= most_instructions;
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
