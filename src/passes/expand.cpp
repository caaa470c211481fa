#include <vector>

#include "ir/rewrite.hpp"
#include "math/functions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

// One level of calls; an expansion may itself call functions.
Program expand_calls(const Program& program) {
  return rewrite(program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    if (node.op == Op::Mean) return out.add(Op::Div, {out.add(Op::Sum, args), out.add(Op::ColumnCount)});
    if (node.op != Op::Call) return copy_node(out, node, args);
    std::array<Formula, 3> values;
    for (std::size_t k = 0; k < args.size(); ++k) values[k] = {&out, args[k]};
    return functions()[node.payload].expand(*program.compute, std::span<const Formula>(values.data(), args.size())).id;
  });
}

bool has(const Program& program, Op op) {
  std::vector<bool> wanted = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (wanted[id] && program[id].op == op) return true;
  return false;
}

NodeId further(Program& out, NodeId a, NodeId b) {
  std::optional<double> x = as_number(out, a), y = as_number(out, b);
  return x && y ? out.number(*x + *y) : out.add(Op::Add, {a, b});
}

// The value `root` as it stands `shift` columns further on: the same expression over leaves that are read further on.
// In `out` no Rotate stands above anything but a leaf, so the walk is over the nodes that differ by column.
NodeId rotated(Program& out, NodeId root, NodeId shift) {
  if (!out[root].by_column) return root;
  std::vector<bool> needed(root + 1);
  needed[root] = true;
  for (NodeId id = root + 1; id-- > 0;)
    if (needed[id] && out[id].op != Op::Rotate && !is_row_reduction(out[id].op))
      for (NodeId arg : out[id])
        if (out[arg].by_column) needed[arg] = true;
  std::vector<NodeId> moved(root + 1);
  for (NodeId id = 0; id <= root; ++id) {
    moved[id] = id;
    if (!needed[id]) continue;
    Node node = out[id];
    if (node.op == Op::Operand || node.op == Op::ColumnIndex) {
      moved[id] = out.add(Op::Rotate, {id, shift});
    } else if (node.op == Op::Rotate) {
      moved[id] = out.add(Op::Rotate, {node.args[0], further(out, node.args[1], shift)});
    } else {
      for (int k = 0; k < node.arity; ++k) node.args[k] = moved[node.args[k]];
      moved[id] = out.add(node.op, std::span<const NodeId>(node.args.data(), node.arity), node.payload);
    }
  }
  return moved[root];
}

Program sink_rotations(const Program& program) {
  return rewrite(program, [](Program& out, const Node& node, std::span<const NodeId> args) {
    return node.op == Op::Rotate ? rotated(out, args[0], args[1]) : copy_node(out, node, args);
  });
}

}  // namespace

Program expand(const Program& program) {
  Program out = expand_calls(program);
  while (has(out, Op::Call)) out = expand_calls(out);
  return has(out, Op::Rotate) ? sink_rotations(out) : out;
}

}  // namespace trireme
