// Reductions that wait for another of the same element, as the fold (math/reductions.hpp) that makes both in one sweep:
//
//   sum(t * t), t = e - mean(e)              variance_squares(e)
//   sum(exp(e - s)), s a row's, of amax(e)   logsumexp_sum(e), times e^(its shift - s) where that is not 1
//   mean(e), sum(e); amax(e) beside them     variance_sum(e) / n, variance_sum(e); logsumexp_top(e)
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "ir/rewrite.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

constexpr std::int64_t moments = 0, exponentials = 1;  // of folds()

constexpr std::int64_t first_of(std::int64_t fold) { return 2 * fold; }
constexpr std::int64_t second_of(std::int64_t fold) { return 2 * fold + 1; }

// select(abs(top) < inf, top, 0), which the fold shifts by: an infinite maximum shifts nothing.
Formula shift_of(Formula top) {
  Formula infinity = top.number(std::numeric_limits<double>::infinity());
  Formula zero = top.number(0);
  return select(abs(top) < infinity, top, zero);
}

class Composer {
 public:
  explicit Composer(const Program& program) : in_(program), wanted_(reachable(program)) {}

  Program run() {
    for (NodeId id = 0; id < in_.size(); ++id) {
      if (!wanted_[id]) continue;
      const Node& node = in_[id];
      if (node.op == Op::Sum || node.op == Op::Mean) {
        if (std::optional<std::int64_t> fold = fold_of_terms(node.args[0])) {
          terms_[node.args[0]] = *fold;
          folded_[element_of(in_, node.args[0])][*fold] = true;
        }
      } else if (node.op == Op::Reduce || node.op == Op::ReduceSpread) {
        folded_[node.args[0]][reductions()[node.payload].fold] = true;
      }
    }
    return rewrite(in_,
                   [&](Program& out, const Node& node, std::span<const NodeId> args) { return made(out, node, args); });
  }

 private:
  // Of terms, exp(e - s) and (e - m) * (e - m): e and what is taken from it.
  static NodeId element_of(const Program& program, NodeId terms) { return program[program[terms].args[0]].args[0]; }
  static NodeId taken_from(const Program& program, NodeId terms) { return program[program[terms].args[0]].args[1]; }

  std::optional<std::int64_t> fold_of_terms(NodeId id) const {
    const Node& node = in_[id];
    if (node.arity == 0 || in_[node.args[0]].op != Op::Sub) return std::nullopt;
    const NodeId element = element_of(in_, id), taken = taken_from(in_, id);
    if (node.op == Op::Mul && node.args[0] == node.args[1] && in_[taken].op == Op::Mean &&
        in_[taken].args[0] == element)
      return moments;
    static const auto exp = static_cast<std::int64_t>(function_named("exp").value());
    if (node.op == Op::Call && node.payload == exp && !in_[taken].by_column && reads_top(taken, element))
      return exponentials;
    return std::nullopt;
  }

  bool reads_top(NodeId id, NodeId element) const {
    std::vector<NodeId> left = {id};
    std::vector<bool> seen(in_.size());
    while (!left.empty()) {
      const NodeId next = left.back();
      left.pop_back();
      if (seen[next]) continue;
      seen[next] = true;
      if (in_[next].op == Op::Amax && in_[next].args[0] == element) return true;
      for (NodeId arg : in_[next]) left.push_back(arg);
    }
    return false;
  }

  bool has_fold(NodeId element, std::int64_t fold) const {
    auto found = folded_.find(element);
    return found != folded_.end() && found->second[static_cast<std::size_t>(fold)];
  }

  NodeId made(Program& out, const Node& node, std::span<const NodeId> args) const {
    const bool sums = node.op == Op::Sum || node.op == Op::Mean;
    NodeId total = no_node;
    if (sums && terms_.contains(node.args[0])) total = total_of_terms(out, terms_.at(node.args[0]), args[0]);
    else if (sums && has_fold(node.args[0], moments)) total = out.add(Op::Fold, args, first_of(moments));
    else if (node.op == Op::Amax && has_fold(node.args[0], exponentials))
      return out.add(Op::Fold, args, first_of(exponentials));
    else return copy_node(out, node, args);
    if (node.op == Op::Sum) return total;
    const NodeId count = out.add(Op::ColumnCount);
    return out.add(Op::Div, {total, count});
  }

  NodeId total_of_terms(Program& out, std::int64_t fold, NodeId terms) const {
    const NodeId element = element_of(out, terms), taken = taken_from(out, terms);
    const Formula total{&out, out.add(Op::Fold, {element}, second_of(fold))};
    if (fold == moments) return total.id;
    const Formula top{&out, out.add(Op::Fold, {element}, first_of(fold))};
    const Formula shift = shift_of(top), by{&out, taken};
    if (taken == top.id || taken == shift.id) return total.id;
    return (total * call("exp", {shift - by})).id;
  }

  const Program& in_;
  std::vector<bool> wanted_;
  std::map<NodeId, std::int64_t> terms_;          // what is summed up -> the fold whose second total it is
  std::map<NodeId, std::array<bool, 2>> folded_;  // elements
};

}  // namespace

Program compose(const Program& program) { return Composer(program).run(); }

}  // namespace trireme
