#include "passes/advise.hpp"

namespace trireme {
namespace {

// The name a reader finds a node by: its own, its result's, or that of the first named value or result that uses it.
std::string place_of(const Program& program, NodeId id) {
  std::vector<bool> uses(program.size());
  uses[id] = true;
  for (NodeId user = id; user < program.size(); ++user) {
    for (NodeId arg : program[user]) uses[user] = uses[user] || uses[arg];
    if (!uses[user]) continue;
    if (const std::string* name = program.name_of(user)) return *name;
    for (const Output& result : program.results)
      if (result.value == user) return result.name;
  }
  return program.name;
}

}  // namespace

std::vector<std::string> advise(const Program& program) {
  std::vector<std::string> remarks;
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (!used[id] || node.op != Op::Div || !node.by_column) continue;
    const Node& divisor = program[node.args[1]];
    // A number or n is one instruction's business; a row's value is worth one division a row.
    if (divisor.by_column || divisor.op == Op::Number || divisor.op == Op::ColumnCount) continue;
    remarks.push_back(
        place_of(program, id) +
        " divides every element by a value of its row: `e * (1 / s)` makes one division a row, `e / s` one "
        "an element");
  }
  return remarks;
}

}  // namespace trireme
