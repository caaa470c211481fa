#include "passes/absent.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "ir/rewrite.hpp"

namespace trireme {

std::optional<double> default_number(const Program& program, const Operand& operand) {
  double sign = 1;
  NodeId id = operand.fallback;
  for (; program[id].op == Op::Neg; id = program[id].args[0]) sign = -sign;
  if (program[id].op != Op::Number) return std::nullopt;
  return sign * program[id].number();
}

bool has_expression(const Program& program, const Operand& operand) {
  return !operand.constant && operand.fallback != no_node && !default_number(program, operand);
}

Program without_absent(const Program& program, const std::set<std::string>& absent) {
  const std::vector<Operand>& operands = program.operands;
  std::vector<bool> gone(operands.size()), typed(operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k)
    gone[k] = !operands[k].constant && operands[k].fallback != no_node && absent.contains(operands[k].name);
  if (std::find(gone.begin(), gone.end(), true) == gone.end()) return program;
  for (NodeId id = 0; id < program.size(); ++id)
    if (program[id].op == Op::Largest)
      if (const std::optional<std::size_t> k = program.find_operand(program.symbols[program[id].payload]))
        typed[*k] = true;
  std::vector<std::int64_t> place(operands.size(), -1);
  Program out = with_signature_of(program);
  out.operands.clear();
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (gone[k] && !typed[k]) continue;
    place[k] = static_cast<std::int64_t>(out.operands.size());
    out.operands.push_back(operands[k]);
  }
  auto has_no_type = [&](const Node& node) {
    if (node.op != Op::Cast && node.op != Op::CastStochastic) return false;
    const std::optional<std::size_t> k = program.find_operand(program.symbols[node.payload]);
    return k && gone[*k];
  };
  // The node that is there instead: a default, or what a cast to a type that nothing says leaves as it is.
  auto stand_in = [&](const Node& node) {
    if (node.op == Op::Operand && gone[node.payload]) return operands[node.payload].fallback;
    return has_no_type(node) ? node.args[0] : no_node;
  };
  std::vector<NodeId> moved(program.size(), no_node);
  // Defaults read only what stands before their operand, so there is an end to it; programs may be as deep as long.
  auto move = [&](NodeId root) {
    std::vector<NodeId> open = {root};
    while (!open.empty()) {
      const NodeId id = open.back();
      const Node& node = program[id];
      std::array<NodeId, 3> args = node.args;
      int arity = node.arity;
      const NodeId instead = stand_in(node);
      if (instead != no_node) args[0] = instead, arity = 1;
      const std::size_t waiting = open.size();
      for (int k = arity; k-- > 0 && moved[id] == no_node;)
        if (moved[args[k]] == no_node) open.push_back(args[k]);
      if (open.size() > waiting) continue;
      open.pop_back();
      if (moved[id] != no_node) continue;
      for (int k = 0; k < arity; ++k) args[k] = moved[args[k]];
      const bool operand = node.op == Op::Operand || node.op == Op::Constant;
      moved[id] = instead != no_node ? args[0]
                                     : out.add(node.op, std::span<const NodeId>(args.data(), node.arity),
                                               operand ? place[node.payload] : node.payload);
    }
    return moved[root];
  };
  auto follow = [&](NodeId& id) { id = id == no_node ? no_node : move(id); };
  auto follow_spread = [&](Spread& spread) {
    for (NodeId* id : nodes_of(spread)) follow(*id);
  };
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (place[k] < 0) continue;
    Operand& operand = out.operands[place[k]];
    follow_spread(operand.spread);
    if (gone[k]) operand.fallback = out.number(0);
    else follow(operand.fallback);
  }
  for (std::size_t k = 0; k < out.results.size(); ++k) {
    out.results[k] = program.results[k];
    follow_spread(out.results[k].spread), follow(out.results[k].value);
  }
  auto give_name = [&](NodeId id, const std::string& name) {
    if (moved[id] != no_node && out[moved[id]].arity > 0 && !out.name_of(moved[id])) out.give_name(moved[id], name);
  };
  for (const auto& [id, name] : program.names()) give_name(id, name);
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (gone[k] && !typed[k]) give_name(operands[k].fallback, operands[k].name);
  return out;
}

}  // namespace trireme
