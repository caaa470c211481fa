#include "passes/advise.hpp"

#include <algorithm>

#include "ir/groups.hpp"
#include "math/functions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

class Adviser {
 public:
  explicit Adviser(const Program& program) : program_(program), used_(reachable(program)), spreads_(program) {}

  std::vector<std::string> run() {
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (!used_[id]) continue;
      division(id);
      second_sweep(id);
    }
    shift_that_cancels();
    return std::move(remarks_);
  }

 private:
  // The name a reader finds a node by: its own, its result's, or that of the first named value or result that uses it.
  std::string place_of(NodeId id) const {
    std::vector<bool> uses(program_.size());
    uses[id] = true;
    for (NodeId user = id; user < program_.size(); ++user) {
      for (NodeId arg : program_[user]) uses[user] = uses[user] || uses[arg];
      if (!uses[user]) continue;
      if (const std::string* name = program_.name_of(user)) return *name;
      for (const Output& result : program_.results)
        if (result.value == user) return result.name;
    }
    return program_.name;
  }

  // What a value may be called in a remark.
  std::string word_for(NodeId id) const {
    const Node& node = program_[id];
    if (const std::string* name = program_.name_of(id)) return *name;
    if (node.op == Op::Operand) return program_.operands[node.payload].name;
    for (const Output& result : program_.results)
      if (result.value == id) return result.name;
    return "e";
  }

  void say(NodeId id, const std::string& what) {
    std::string remark = place_of(id) + " " + what;
    if (std::find(remarks_.begin(), remarks_.end(), remark) == remarks_.end()) remarks_.push_back(std::move(remark));
  }

  void division(NodeId id) {
    const Node& node = program_[id];
    if (node.op != Op::Div || !node.by_column || spreads_[id].is_group()) return;
    const Node& divisor = program_[node.args[1]];
    if (spreads_[node.args[1]].is_group() && divisor.by_row)
      return say(id,
                 "divides every element by a value of its group: `e * (1 / s)` makes one division a group, `e / s` one "
                 "an element");
    // A number or n is one instruction's business; a row's value is worth one division a row.
    if (divisor.by_column || divisor.op == Op::Number || divisor.op == Op::ColumnCount) return;
    say(id, divisor.op == Op::Constant
                ? "divides every element by a constant: `e * (1 / c)` makes one division in all, `e / c` one an element"
                : "divides every element by a value of its row: `e * (1 / s)` makes one division a row, `e / s` one "
                  "an element");
  }

  bool calls(NodeId id, std::string_view function) const {
    return program_[id].op == Op::Call && functions()[program_[id].payload].name == function;
  }
  NodeId held(NodeId id) const {
    while (program_[id].op == Op::StopGradient) id = program_[id].args[0];
    return id;
  }
  // `e` of `e * e`, `fma(e, e, 0)` and `square(e)`.
  NodeId squared(NodeId id) const {
    const Node& node = program_[id];
    const bool is_product = node.op == Op::Mul || (node.op == Op::Fma && as_number(program_, node.args[2]) == 0.0);
    if (is_product && node.args[0] == node.args[1]) return node.args[0];
    return calls(id, "square") ? node.args[0] : no_node;
  }
  // `e` of `e / n` and `e * (1 / n)`.
  NodeId over_columns(NodeId id) const {
    const Node& node = program_[id];
    auto is_columns = [&](NodeId each) { return program_[each].op == Op::ColumnCount; };
    auto is_inverse = [&](NodeId each) {
      const Node& inverse = program_[each];
      return inverse.op == Op::Div && as_number(program_, inverse.args[0]) == 1.0 && is_columns(inverse.args[1]);
    };
    if (node.op == Op::Div && is_columns(node.args[1])) return node.args[0];
    for (int k = 0; k < 2 && node.op == Op::Mul; ++k)
      if (is_inverse(node.args[k])) return node.args[1 - k];
    return no_node;
  }
  // `e` of `mean(e)`, `sum(e) / n` and `sum(e) * (1 / n)`.
  NodeId mean_of(NodeId id) const {
    if (program_[id].op == Op::Mean) return program_[id].args[0];
    const NodeId sum = over_columns(id);
    return sum != no_node && program_[sum].op == Op::Sum ? program_[sum].args[0] : no_node;
  }
  // `e` of `e - mean(e)`, and of `e - amax(e)`.
  NodeId centred(NodeId id) const {
    const Node& node = program_[id];
    return node.op == Op::Sub && mean_of(held(node.args[1])) == node.args[0] ? node.args[0] : no_node;
  }
  NodeId less_its_largest(NodeId id) const {
    const Node& node = program_[id];
    if (node.op != Op::Sub) return no_node;
    const NodeId by = held(node.args[1]);
    return program_[by].op == Op::Amax && program_[by].args[0] == node.args[0] ? node.args[0] : no_node;
  }

  // Wherever it is used.
  bool is_divided_by_columns(NodeId sum) const {
    for (NodeId user = sum; user < program_.size(); ++user)
      if (used_[user] && std::find(program_[user].begin(), program_[user].end(), sum) != program_[user].end() &&
          over_columns(user) != sum)
        return false;
    return std::none_of(program_.results.begin(), program_.results.end(),
                        [&](const Output& result) { return result.value == sum; });
  }

  // Reductions of what another reduction of the same value must have been made for: two sweeps over a row.
  void second_sweep(NodeId id) {
    const Node& node = program_[id];
    // docs/refused.md has what composed reductions cost where there is nothing to exchange.
    const std::string sweeps = ", which takes two sweeps over the row: ";
    const std::string one =
        "` takes one, with other last bits: over machines it saves an exchange, on one it is often no faster";
    if (node.op == Op::Mean || node.op == Op::Sum) {
      const NodeId root = squared(node.args[0]), e = root == no_node ? no_node : centred(root);
      const std::string name = e == no_node ? "" : word_for(e);
      const std::string number = node.op == Op::Sum && !is_divided_by_columns(id) ? " * n" : "";
      if (e != no_node)
        say(id, "squares distances from the mean of their row" + sweeps + "`variance(" + name + ")" + number + one);
    }
    if (node.op == Op::Sum && calls(node.args[0], "exp")) {
      const NodeId e = less_its_largest(program_[node.args[0]].args[0]);
      if (e == no_node) return;
      bool is_logarithm = false;
      for (NodeId user = 0; user < program_.size(); ++user)
        is_logarithm |= used_[user] && calls(user, "log") && program_[user].args[0] == id;
      say(id, "sums exponentials less the largest" + sweeps + (is_logarithm ? "`logsumexp(" : "`softmax(") +
                  word_for(e) + ")" + one);
    }
    if (const NodeId squares = node.op == Op::Sub ? mean_of(node.args[0]) : no_node; squares != no_node) {
      const NodeId e = squared(squares), mean = squared(node.args[1]);
      if (e == no_node || mean == no_node || mean_of(mean) != e) return;
      say(id,
          "subtracts the mean's square from the mean of squares, and has few digits where the mean is large: "
          "`variance(" +
              word_for(e) + ")` keeps them, in one sweep too");
    }
  }

  // A maximum that is only there to keep exp in range has a gradient, and it sums to 0: where the algebra of
  // differentiate does not see that, the backward looks for the columns that are the maximum.
  void shift_that_cancels() {
    const NodeId shift = first_shift();
    if (shift == no_node) return;
    const Result<Program> backward = differentiate(program_);
    if (!backward || ties(*backward) <= ties(program_)) return;
    const std::string cancels =
        "is a maximum that `exp` is shifted by, and its gradient goes to the columns that are the maximum; if the "
        "shift cancels, `stop_gradient(";
    say(shift, cancels + maximum_as_written(program_[shift]) + ")` spares the backward the search for them");
  }

  static std::string maximum_as_written(const Node& node) {
    if (node.op == Op::Amax) return "amax(...)";
    if (group_of(node).entries) return "amax(entries(...))";
    return group_of(node).wraps ? "amax(..., j % g)" : "amax(..., j / g)";
  }

  // Does the node reduce a row or its groups by `op`?
  static bool reduces_by(const Node& node, Op op) {
    return node.op == op || (node.op == Op::Group && group_of(node).op == op);
  }

  // A maximum whose value reaches elements only by a difference under exp.
  NodeId first_shift() {
    std::vector<NodeId> shift(program_.size(), no_node);
    for (NodeId id = 0; id < program_.size(); ++id) {
      const Node& node = program_[id];
      if (!used_[id] || node.op == Op::StopGradient) continue;
      if (reduces_by(node, Op::Amax)) shift[id] = id;
      else if (!spreads_[id].is_element() && !is_row_reduction(node.op) && node.op != Op::Group)
        for (NodeId arg : node) shift[id] = shift[arg] != no_node ? shift[arg] : shift[id];
      if (!calls(id, "exp") || program_[node.args[0]].op != Op::Sub) continue;
      if (const NodeId found = shift[program_[node.args[0]].args[1]]; found != no_node) return found;
    }
    return no_node;
  }

  // Comparisons of elements with a maximum or minimum of their row or group.
  static int ties(const Program& program) {
    const std::vector<bool> used = reachable(program);
    int count = 0;
    for (NodeId id = 0; id < program.size(); ++id) {
      const Node& node = program[id];
      if (!used[id] || node.op != Op::Equal) continue;
      for (int k = 0; k < 2; ++k) {
        const Node& side = program[node.args[k]];
        const bool is_extreme = reduces_by(side, Op::Amax) || reduces_by(side, Op::Amin);
        count += is_extreme && program[node.args[1 - k]].by_column;
      }
    }
    return count;
  }

  const Program& program_;
  const std::vector<bool> used_;
  ColumnSpreads spreads_;
  std::vector<std::string> remarks_;
};

}  // namespace

std::vector<std::string> advise(const Program& program) { return Adviser(program).run(); }

}  // namespace trireme
