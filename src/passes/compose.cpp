// Reductions that wait for another of the same element, as the fold (math/reductions.hpp) that makes both in one sweep:
//
//   sum(t * t), t = e - mean(e)                  variance_squares(e)
//   sum(exp(e - s)), s a row's, of amax(e)       logsumexp_sum(e), times e^(its shift - s) where that is not 1
//   sum(exp(e - s) * w), sum(softmax(e) * w)     logsumexp_weighted(e, w), with the same factor, or over
//   logsumexp_sum(e) mean(e), sum(e); amax(e) beside them         variance_sum(e) / n, variance_sum(e);
//   logsumexp_top(e)
//
// A weight may stand in a select whose other side is 0; factors and divisors of the row stand outside of the sum.
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

constexpr std::int64_t moments = 0, exponentials = 1, weighted = 2;  // of folds()

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
  explicit Composer(const Program& program)
      : in_(program), wanted_(reachable(program)), level_(program.size()), moved_(program.size(), no_node) {}

  Program run() {
    std::vector<NodeId> order;
    for (NodeId id = 0; id < in_.size(); ++id) {
      const Node& node = in_[id];
      for (NodeId arg : node) level_[id] = std::max(level_[id], level_[arg]);
      level_[id] += is_row_reduction(node.op) || node.op == Op::ReduceSpread;
      if (!wanted_[id]) continue;
      order.push_back(id);
      if (node.op == Op::Sum || node.op == Op::Mean) {
        if (std::optional<Terms> terms = terms_of(node.args[0])) {
          folded_[terms->element][terms->fold == moments ? moments : exponentials] = true;
          terms_.emplace(node.args[0], std::move(*terms));
        }
      } else if (node.op == Op::Reduce || node.op == Op::ReduceSpread) {
        folded_[node.args[0]][reductions()[node.payload].fold] = true;
      }
    }
    auto next = order.begin();
    return rewrite_in_order(in_, order, [&](Program& out, const Node& node, std::span<const NodeId> args) {
      return moved_[*next++] = made(out, node, args);
    });
  }

 private:
  // What a sum adds up: (e - mean(e))^2, or exp(e - taken), softmax(e), times what `around` says.
  struct Terms {
    std::int64_t fold;
    NodeId element;
    NodeId taken = no_node;  // none of softmax
    struct Step {
      enum { Factor, Divisor, Condition } kind;
      NodeId node;
    };
    std::vector<Step> around = {};  // from the inside out
  };

  std::optional<Terms> terms_of(NodeId id) const {
    const Node& node = in_[id];
    if (node.op == Op::Mul && node.args[0] == node.args[1] && in_[node.args[0]].op == Op::Sub) {
      const NodeId element = in_[node.args[0]].args[0], taken = in_[node.args[0]].args[1];
      if (in_[taken].op == Op::Mean && in_[taken].args[0] == element) return Terms{moments, element};
    }
    std::optional<Terms> found = exponentials_of(id);
    if (!found) return std::nullopt;
    for (const Terms::Step& step : found->around) {
      if (!in_[step.node].by_column) continue;
      if (level_[step.node] > level_[found->element]) return std::nullopt;  // the weight would wait
      found->fold = weighted;
    }
    const bool plain = found->fold == exponentials;
    if (plain && found->taken == no_node) return std::nullopt;  // sum(softmax(e)) waits for nothing else
    return found;
  }

  // What is linear in an exponential whose shift waits for the maximum of the same element.
  std::optional<Terms> exponentials_of(NodeId id) const {
    const Node& node = in_[id];
    static const auto exp = static_cast<std::int64_t>(function_named("exp").value());
    if (node.op == Op::Call && node.payload == exp && in_[node.args[0]].op == Op::Sub) {
      const NodeId element = in_[node.args[0]].args[0], taken = in_[node.args[0]].args[1];
      if (in_[taken].by_column || !reads_top(taken, element)) return std::nullopt;
      return Terms{exponentials, element, taken};
    }
    if (node.op == Op::ReduceSpread && reductions()[node.payload].fold == exponentials)
      return Terms{exponentials, node.args[0]};
    auto inside = [&](NodeId term, Terms::Step step) {
      std::optional<Terms> found = exponentials_of(term);
      if (found) found->around.push_back(step);
      return found;
    };
    if (node.op == Op::Mul) {
      if (auto found = inside(node.args[0], {Terms::Step::Factor, node.args[1]})) return found;
      return inside(node.args[1], {Terms::Step::Factor, node.args[0]});
    }
    if (node.op == Op::Div && !in_[node.args[1]].by_column)
      return inside(node.args[0], {Terms::Step::Divisor, node.args[1]});
    if (node.op == Op::Select && as_number(in_, node.args[2]) == 0.0)
      return inside(node.args[1], {Terms::Step::Condition, node.args[0]});
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
      const Node& node = in_[next];
      const bool reduces =
          node.op == Op::Amax || (node.op == Op::Reduce && reductions()[node.payload].fold == exponentials);
      if (reduces && node.args[0] == element) return true;
      for (NodeId arg : node) left.push_back(arg);
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
    if (sums && terms_.contains(node.args[0])) total = total_of(out, terms_.at(node.args[0]));
    else if (sums && has_fold(node.args[0], moments)) total = out.add(Op::Fold, args, first_of(moments));
    else if (node.op == Op::Amax && has_fold(node.args[0], exponentials))
      return out.add(Op::Fold, args, first_of(exponentials));
    else return copy_node(out, node, args);
    if (node.op == Op::Sum) return total;
    const NodeId count = out.add(Op::ColumnCount);
    return out.add(Op::Div, {total, count});
  }

  NodeId total_of(Program& out, const Terms& terms) const {
    const NodeId element = moved_[terms.element];
    if (terms.fold == moments) return out.add(Op::Fold, {element}, second_of(moments));
    auto here = [&](NodeId id) { return Formula{&out, moved_[id]}; };
    std::optional<Formula> weight;
    for (const Terms::Step& step : terms.around) {
      if (!in_[step.node].by_column) continue;
      const Formula by = here(step.node);
      if (step.kind == Terms::Step::Factor) {
        weight = weight ? *weight * by : by;
      } else {
        const Formula inside = weight ? *weight : by.number(1);
        weight = select(by, inside, by.number(0));
      }
    }
    const Formula sum{&out, out.add(Op::Fold, {element}, second_of(exponentials))};
    Formula total = weight ? Formula{&out, out.add(Op::Fold, {element, weight->id}, second_of(weighted))} : sum;
    if (terms.taken == no_node) {
      total = total / sum;
    } else {
      const Formula top{&out, out.add(Op::Fold, {element}, first_of(exponentials))};
      const Formula shift = shift_of(top), by = here(terms.taken);
      if (by.id != top.id && by.id != shift.id) total = total * call("exp", {shift - by});
    }
    for (const Terms::Step& step : terms.around) {
      if (in_[step.node].by_column) continue;
      const Formula by = here(step.node);
      total = step.kind == Terms::Step::Factor    ? total * by
              : step.kind == Terms::Step::Divisor ? total / by
                                                  : select(by, total, by.number(0));
    }
    return total.id;
  }

  const Program& in_;
  std::vector<bool> wanted_;
  std::vector<int> level_;                        // how many reductions stand one upon another
  std::map<NodeId, Terms> terms_;                 // by what is summed up
  std::map<NodeId, std::array<bool, 2>> folded_;  // elements
  std::vector<NodeId> moved_;
};

}  // namespace

Program compose(const Program& program) { return Composer(program).run(); }

}  // namespace trireme
