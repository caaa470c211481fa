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
  // `e` of `e * e` and `square(e)`.
  NodeId squared(NodeId id) const {
    const Node& node = program_[id];
    if (node.op == Op::Mul && node.args[0] == node.args[1]) return node.args[0];
    return calls(id, "square") ? node.args[0] : no_node;
  }
  // `e` of `e - reduction(e)`.
  NodeId shifted_by(Op reduction, NodeId id) const {
    const Node& node = program_[id];
    if (node.op != Op::Sub) return no_node;
    const NodeId by = held(node.args[1]);
    return program_[by].op == reduction && program_[by].args[0] == node.args[0] ? node.args[0] : no_node;
  }

  // Reductions of what another reduction of the same value must have been made for: two sweeps over a row.
  void second_sweep(NodeId id) {
    const Node& node = program_[id];
    const std::string sweeps = ", which takes two sweeps over the row: ";
    if (node.op == Op::Mean || node.op == Op::Sum) {
      const NodeId root = squared(node.args[0]), e = root == no_node ? no_node : shifted_by(Op::Mean, root);
      const std::string name = e == no_node ? "" : word_for(e), number = node.op == Op::Sum ? " * n" : "";
      if (e != no_node)
        say(id, "squares distances from the mean of their row" + sweeps + "`variance(" + name + ")" + number +
                    "` takes one, with other last bits");
    }
    if (node.op == Op::Sum && calls(node.args[0], "exp")) {
      const NodeId e = shifted_by(Op::Amax, program_[node.args[0]].args[0]);
      if (e == no_node) return;
      bool is_logarithm = false;
      for (NodeId user = 0; user < program_.size(); ++user)
        is_logarithm |= used_[user] && calls(user, "log") && program_[user].args[0] == id;
      say(id, "sums exponentials less the largest" + sweeps + (is_logarithm ? "`logsumexp(" : "`softmax(") +
                  word_for(e) + ")` takes one, with other last bits");
    }
    if (node.op == Op::Sub && program_[node.args[0]].op == Op::Mean) {
      const NodeId e = squared(program_[node.args[0]].args[0]), mean = squared(node.args[1]);
      if (e == no_node || mean == no_node || program_[mean].op != Op::Mean || program_[mean].args[0] != e) return;
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
    say(shift,
        "is a maximum that `exp` is shifted by, and its gradient goes to the columns that are the maximum; if the "
        "shift cancels, `stop_gradient(" +
            std::string(facts(program_[shift].op).name) + "(...))` spares the backward the search for them");
  }

  // A maximum whose value reaches elements only by a difference under exp.
  NodeId first_shift() const {
    std::vector<NodeId> shift(program_.size(), no_node);
    for (NodeId id = 0; id < program_.size(); ++id) {
      const Node& node = program_[id];
      if (!used_[id] || node.op == Op::StopGradient) continue;
      if (node.op == Op::Amax) shift[id] = id;
      else if (!node.by_column && !is_row_reduction(node.op))
        for (NodeId arg : node) shift[id] = shift[arg] != no_node ? shift[arg] : shift[id];
      if (!calls(id, "exp") || program_[node.args[0]].op != Op::Sub) continue;
      if (const NodeId found = shift[program_[node.args[0]].args[1]]; found != no_node) return found;
    }
    return no_node;
  }

  // Comparisons of elements with a maximum or minimum of their row.
  static int ties(const Program& program) {
    const std::vector<bool> used = reachable(program);
    int count = 0;
    for (NodeId id = 0; id < program.size(); ++id) {
      const Node& node = program[id];
      if (!used[id] || node.op != Op::Equal) continue;
      for (int k = 0; k < 2; ++k) {
        const Op side = program[node.args[k]].op;
        count += (side == Op::Amax || side == Op::Amin) && program[node.args[1 - k]].by_column;
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
