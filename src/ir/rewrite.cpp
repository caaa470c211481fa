#include "ir/rewrite.hpp"

namespace trireme {

Program with_signature_of(const Program& program) {
  Program out;
  out.name = program.name;
  out.operands = program.operands;
  out.results = program.results;
  out.symbols = program.symbols;
  out.compute = program.compute;
  // Ids of the old program mean nothing in the new one; the presence of an axis does.
  auto forget = [](Spread& spread) {
    for (NodeId* id : nodes_of(spread)) *id = no_node;
  };
  for (Operand& operand : out.operands) {
    operand.fallback = no_node;
    forget(operand.spread);
  }
  for (Output& result : out.results) {
    result.value = no_node;
    forget(result.spread);
  }
  return out;
}

Program in_canonical_order(const Program& program) {
  std::vector<NodeId> order;
  std::vector<bool> met(program.size());
  struct Visit {
    NodeId id;
    int next = 0;  // the argument to look at
  };
  for (NodeId root : roots(program)) {
    std::vector<Visit> open;
    auto meet = [&](NodeId id) {
      if (met[id]) return;
      met[id] = true;
      open.push_back({id});
    };
    meet(root);
    while (!open.empty()) {
      Visit& visit = open.back();
      const Node& node = program[visit.id];
      if (visit.next < node.arity) {
        meet(node.args[node.arity - ++visit.next]);
      } else {
        order.push_back(visit.id);
        open.pop_back();
      }
    }
  }
  return rewrite_in_order(program, order, copy_node);
}

}  // namespace trireme
