#include "passes/absent.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "ir/rewrite.hpp"

namespace trireme {

bool has_expression(const Program& program, const Operand& operand) {
  if (operand.constant || operand.fallback == no_node) return false;
  NodeId id = operand.fallback;
  while (program[id].op == Op::Neg) id = program[id].args[0];  // -(1) is a number, as -1 is
  return program[id].op != Op::Number;
}

Program without_absent(const Program& program, const std::set<std::string>& absent) {
  auto goes = [&](const Operand& operand) { return has_expression(program, operand) && absent.contains(operand.name); };
  if (std::none_of(program.operands.begin(), program.operands.end(), goes)) return program;
  std::vector<std::int64_t> place(program.operands.size(), -1);
  Program out = with_signature_of(program);
  out.operands.clear();
  for (std::size_t k = 0; k < program.operands.size(); ++k) {
    if (goes(program.operands[k])) continue;
    place[k] = static_cast<std::int64_t>(out.operands.size());
    out.operands.push_back(program.operands[k]);
  }
  std::vector<NodeId> moved(program.size(), no_node);
  // Defaults read only what stands before their operand, so there is an end to it; programs may be as deep as long.
  auto move = [&](NodeId root) {
    std::vector<NodeId> open = {root};
    while (!open.empty()) {
      const NodeId id = open.back();
      const Node& node = program[id];
      const bool operand = node.op == Op::Operand || node.op == Op::Constant, gone = operand && place[node.payload] < 0;
      std::array<NodeId, 3> args = node.args;
      int arity = node.arity;
      if (gone) args[0] = program.operands[node.payload].fallback, arity = 1;
      const std::size_t waiting = open.size();
      for (int k = arity; k-- > 0 && moved[id] == no_node;)
        if (moved[args[k]] == no_node) open.push_back(args[k]);
      if (open.size() > waiting) continue;
      open.pop_back();
      if (moved[id] != no_node) continue;
      for (int k = 0; k < arity; ++k) args[k] = moved[args[k]];
      moved[id] = gone ? args[0]
                       : out.add(node.op, std::span<const NodeId>(args.data(), node.arity),
                                 operand ? place[node.payload] : node.payload);
    }
    return moved[root];
  };
  auto follow = [&](NodeId& id) { id = id == no_node ? no_node : move(id); };
  auto follow_spread = [&](Spread& spread) {
    for (NodeId* id : nodes_of(spread)) follow(*id);
  };
  for (Operand& operand : out.operands) follow_spread(operand.spread), follow(operand.fallback);
  for (std::size_t k = 0; k < out.results.size(); ++k) {
    out.results[k] = program.results[k];
    follow_spread(out.results[k].spread), follow(out.results[k].value);
  }
  for (const auto& [id, name] : program.names())
    if (moved[id] != no_node) out.give_name(moved[id], name);
  return out;
}

}  // namespace trireme
