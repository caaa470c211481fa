#include "ir/program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/contract.hpp"
#include "ir/groups.hpp"

namespace trireme {
namespace {

std::size_t hash_of(Op op, std::array<NodeId, 3> args, std::int64_t payload) {
  std::uint64_t h = static_cast<std::uint64_t>(op) * 0x9E3779B97F4A7C15u;
  for (std::uint64_t part :
       {std::uint64_t{args[0]}, std::uint64_t{args[1]}, std::uint64_t{args[2]}, static_cast<std::uint64_t>(payload)}) {
    h = (h ^ part) * 0xFF51AFD7ED558CCDu;
    h ^= h >> 32;
  }
  return h;
}

std::array<NodeId, 3> in_key_order(Op op, std::array<NodeId, 3> args) {
  if (facts(op).commutative && args[1] < args[0]) std::swap(args[0], args[1]);
  return args;
}

}  // namespace

NodeId Program::add(Op op, std::span<const NodeId> args, std::int64_t payload) {
  Node node{op};
  node.arity = static_cast<std::uint8_t>(args.size());
  std::copy(args.begin(), args.end(), node.args.begin());
  node.payload = payload;

  std::array<NodeId, 3> key = in_key_order(op, node.args);
  std::size_t hash = hash_of(op, key, payload);
  auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Node& known = nodes_[it->second];
    if (known.op == op && known.arity == node.arity && known.payload == payload && in_key_order(op, known.args) == key)
      return it->second;
  }

  if (op == Op::Operand) {
    const Spread& spread = operands[payload].spread;
    node.by_row = spread.row.present;
    node.by_column = spread.column.present;
  }
  if (op == Op::RowIndex || op == Op::Random) node.by_row = true;
  if (op == Op::ColumnIndex || op == Op::Random) node.by_column = true;
  for (NodeId arg : node) {
    node.by_row |= nodes_[arg].by_row;
    node.by_column |= nodes_[arg].by_column;
  }
  if (is_row_reduction(op) || op == Op::PickColumn) node.by_column = false;
  if (op == Op::Group) node.by_column = !group_of(payload).entries;

  NodeId id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(node);
  by_hash_.emplace(hash, id);
  return id;
}

NodeId Program::number(double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return add(Op::Number, {}, std::bit_cast<std::int64_t>(value));
}

NodeId Program::symbol(Op op, std::string_view name, std::span<const NodeId> args) {
  for (std::size_t k = symbol_index_.size(); k < symbols.size(); ++k)
    symbol_index_.emplace(symbols[k], static_cast<std::int64_t>(k));
  auto [it, is_new] = symbol_index_.emplace(name, static_cast<std::int64_t>(symbols.size()));
  if (is_new) symbols.emplace_back(name);
  return add(op, args, it->second);
}

void Program::give_name(NodeId id, std::string name) {
  if (name_index_.emplace(id, names_.size()).second) names_.emplace_back(id, std::move(name));
}

const std::string* Program::name_of(NodeId id) const {
  auto it = name_index_.find(id);
  return it == name_index_.end() ? nullptr : &names_[it->second].second;
}

std::optional<std::size_t> Program::find_operand(std::string_view wanted) const {
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (operands[k].name == wanted) return k;
  return std::nullopt;
}

std::optional<std::size_t> Program::find_result(std::string_view wanted) const {
  for (std::size_t k = 0; k < results.size(); ++k)
    if (results[k].name == wanted) return k;
  return std::nullopt;
}

std::vector<NodeId> roots(const Program& program) {
  std::vector<NodeId> found;
  auto add = [&](const Spread& spread, NodeId value) {
    for (NodeId id : nodes_of(spread))
      if (id != no_node) found.push_back(id);
    if (value != no_node) found.push_back(value);
  };
  for (const Operand& operand : program.operands) add(operand.spread, operand.fallback);
  for (const Output& result : program.results) add(result.spread, result.value);
  return found;
}

std::vector<bool> reachable(const Program& program) {
  std::vector<bool> reached(program.size());
  for (NodeId id : roots(program)) reached[id] = true;
  for (NodeId id = static_cast<NodeId>(program.size()); id-- > 0;)
    if (reached[id])
      for (NodeId arg : program[id]) reached[arg] = true;
  return reached;
}

bool has(const Program& program, Op op) {
  std::vector<bool> wanted = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (wanted[id] && program[id].op == op) return true;
  return false;
}

std::vector<bool> read_operands(const Program& program) {
  std::vector<bool> reached = reachable(program), read(program.operands.size());
  for (NodeId id = 0; id < program.size(); ++id)
    if (reached[id] && program[id].op == Op::Operand) read[program[id].payload] = true;
  return read;
}

bool sums_over_rows(const Program& program, const Output& result) {
  return is_column_reduction(program[result.value].op) && !(result.spread.row.present && result.spread.row.plain());
}

std::int64_t row_block_of(const Program& program, std::int64_t rows, std::int64_t columns) {
  for (const Output& result : program.results)
    if (result.row_block) return result.row_block;
  return contract::row_block(rows, columns);
}

std::optional<double> as_number(const Program& program, NodeId id) {
  if (program[id].op != Op::Number) return std::nullopt;
  return program[id].number();
}

}  // namespace trireme
