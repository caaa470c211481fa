#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/groups.hpp"
#include "ir/rewrite.hpp"
#include "language/diagnostic.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "passes/absent.hpp"
#include "passes/algebra.hpp"
#include "passes/passes.hpp"
#include "passes/saved.hpp"
#include "passes/writer.hpp"

namespace trireme {
namespace {

// Longer adjoints are written down and go on as one value. What cancels in norms and softmaxes is much shorter; without
// a limit nested sums would grow like the paths through them.
constexpr std::size_t most_terms = 8;
constexpr std::size_t most_factors = 16;

bool is_long(const Terms& terms) {
  return terms.size() > most_terms || std::any_of(terms.begin(), terms.end(), [](const Term& term) {
           return term.longer_than(most_factors) || !(std::fabs(term.coefficient) < 0x1p60);
         });
}

bool is_element(const Spread& spread) { return spread.row.present && spread.column.present && spread.plain(); }

constexpr ColumnSpread per_row, per_element{ColumnSpread::Kind::Element};

// Walks the forward backwards. An adjoint is held per element where its node differs along the row, per group where it
// is one value a group; otherwise it is the row's total. Nothing is summed over rows on the way: that is done once, by
// the colsum of an operand's gradient.
class Differentiator {
 public:
  Differentiator(const Program& forward, const DifferentiateOptions& options)
      : in_(forward),
        options_(options),
        algebra_(out_.program),
        value_(forward.size(), no_node),
        in_spreads_(forward),
        out_spreads_(out_.program),
        adjoint_(forward.size()),
        shares_(forward.size()),
        reached_(forward.size()),
        reads_memory_(forward.size()) {}

  Result<Program> run() {
    if (has(in_, Op::Fold))
      return Error{Code::InvalidProgram, in_.name +
                                             ": the totals of a composed reduction have no derivative; "
                                             "differentiate the program that says variance or logsumexp"};
    TRIREME_TRY(seeded, results_with_gradient());
    make_operands(seeded);
    copy_forward();
    algebra_.end_of_forward();
    std::vector<bool> is_forward(out_.program.size());
    for (NodeId id : value_)
      if (id != no_node) is_forward[id] = true;
    writer_.emplace(algebra_, is_forward, seeded.size());
    for (std::size_t k = 0; k < seeded.size(); ++k) seed(in_.results[seeded[k]], k);
    for (NodeId id = static_cast<NodeId>(in_.size()); id-- > 0;)
      if (reached_[id]) pass_on(id);
    TRIREME_CHECK(make_results());
    return finish_backward(in_, std::move(out_));
  }

 private:
  // ---- the signature ----

  bool is_column_maximum(std::size_t k) const { return in_[in_.results[k].value].op == Op::ColumnMax; }
  Error no_gradient_to(std::size_t k) const {
    return {Code::Unsupported, in_.name + ": no gradient arrives for '" + in_.results[k].name +
                                   "', a colmax: it would be shared by the elements that equal the maximum, and how "
                                   "many they are is known when all rows are done"};
  }

  // Gradients arrive for the results that the caller names; else for every [i,j] result, and for every other that no
  // result uses. A maximum over rows has none.
  Result<std::vector<std::size_t>> results_with_gradient() const {
    if (options_.gradients) return named_results(*options_.gradients);
    std::vector<bool> reached(in_.size()), used(in_.size());  // by results, by other results
    for (const Output& result : in_.results) reached[result.value] = true;
    for (NodeId id = static_cast<NodeId>(in_.size()); id-- > 0;)
      if (reached[id])
        for (NodeId arg : in_[id]) reached[arg] = used[arg] = true;
    std::vector<std::size_t> seeded;
    for (std::size_t k = 0; k < in_.results.size(); ++k)
      if ((is_element(in_.results[k].spread) || !used[in_.results[k].value]) && !is_column_maximum(k))
        seeded.push_back(k);
    if (seeded.empty()) return no_gradient_to(0);
    return seeded;
  }

  Result<std::vector<std::size_t>> named_results(const std::set<std::string>& names) const {
    for (const std::string& name : names) {
      if (in_.find_result(name)) continue;
      Suggestion suggestion(name);
      for (const Output& result : in_.results) suggestion.consider(result.name);
      return Error{Code::InvalidArgument,
                   in_.name + " has no result '" + name + "' whose gradient could arrive" + suggestion.text()};
    }
    if (names.empty()) return Error{Code::InvalidArgument, in_.name + ": at least one result has a gradient"};
    std::vector<std::size_t> seeded;
    for (std::size_t k = 0; k < in_.results.size(); ++k)
      if (names.contains(in_.results[k].name)) {
        if (is_column_maximum(k)) return no_gradient_to(k);
        seeded.push_back(k);
      }
    return seeded;
  }

  // Results whose types are asked for, `largest(q)`: the gradient has the type, also where it does not arrive.
  std::vector<bool> typed_results() const {
    std::vector<bool> typed(in_.results.size());
    for (NodeId id = 0; id < in_.size(); ++id)
      if (in_[id].op == Op::Largest)
        if (const std::optional<std::size_t> k = in_.find_result(in_.symbols[in_[id].payload])) typed[*k] = true;
    return typed;
  }

  // Gradients, those of them that only have a type, then the forward's operands, then its results, in case they are
  // saved; what is not used goes at the end.
  void make_operands(const std::vector<std::size_t>& seeded) {
    Program& out = out_.program;
    out.name = in_.name + "_backward";
    out.symbols = in_.symbols;
    std::vector<bool> typed = typed_results();
    auto add_gradient = [&](std::size_t k) {
      out.operands.push_back({"d" + in_.results[k].name, false, in_.results[k].spread});
      typed[k] = false;
    };
    for (std::size_t k : seeded) add_gradient(k);
    out_.first_typed = out.operands.size();
    for (std::size_t k = 0; k < typed.size(); ++k)
      if (typed[k]) add_gradient(k);
    out_.first_operand = out.operands.size();
    out.operands.insert(out.operands.end(), in_.operands.begin(), in_.operands.end());
    out_.first_saved = out.operands.size();
    for (const Output& result : in_.results) out.operands.push_back({result.name, false, result.spread});
    for (std::size_t k = 0; k < out_.first_operand; ++k) {
      if (k < out_.first_typed) out.add(Op::Operand, {}, static_cast<std::int64_t>(k));
      out.operands[k].fallback = out.number(0);
    }
  }

  void copy_forward() {
    Program& out = out_.program;
    for (NodeId id = 0; id < in_.size(); ++id) {
      const Node& node = in_[id];
      reads_memory_[id] = node.op == Op::Operand && !in_.operands[node.payload].spread.row.picked();
      for (NodeId arg : node) reads_memory_[id] = reads_memory_[id] || reads_memory_[arg];
      if (node.op == Op::Random) reads_memory_[id] = false;  // a seed has no gradient
      if (is_column_reduction(node.op)) continue;
      std::array<NodeId, 3> args = node.args;
      for (int k = 0; k < node.arity; ++k) args[k] = value_[node.args[k]];
      bool operand = node.op == Op::Operand || node.op == Op::Constant;
      std::int64_t payload = node.payload + (operand ? static_cast<std::int64_t>(out_.first_operand) : 0);
      value_[id] = node.op == Op::StopGradient
                       ? args[0]
                       : out.add(node.op, std::span<const NodeId>(args.data(), node.arity), payload);
    }
    auto follow = [&](NodeId& id) { id = id == no_node ? no_node : value_[id]; };
    for (std::size_t k = 0; k < out.operands.size(); ++k) {
      for (NodeId* id : nodes_of(out.operands[k].spread)) follow(*id);
      if (k >= out_.first_operand) follow(out.operands[k].fallback);
    }
    for (const auto& [id, name] : in_.names())
      if (value_[id] != no_node) out.give_name(value_[id], name);
    for (const Output& result : in_.results) {
      out_.saved_values.push_back(value_[result.value]);
      if (value_[result.value] != no_node) out.give_name(value_[result.value], result.name);
    }
  }

  // ---- adjoints ----

  void seed(const Output& result, std::size_t gradient) {
    Terms arriving = {{1, {{out_.program.add(Op::Operand, {}, static_cast<std::int64_t>(gradient)), 1}}}};
    const Node& value = in_[result.value];
    if (is_column_reduction(value.op)) {
      contribute(value.args[0], arriving, per_element);
    } else {
      contribute(result.value, arriving, spread_of(result.spread.column));
    }
  }

  // `from`: what the terms are shares of, each element of the row or each group, to be summed if the node is less.
  void contribute(NodeId id, const Terms& terms, const ColumnSpread& from) {
    if (!reads_memory_[id]) return;  // a number's gradient, say: nobody asks for it
    reached_[id] = true;
    const ColumnSpread& own = in_spreads_[id];
    Terms& adjoint = from != own && own.is_group() ? shares_[id] : adjoint_[id];
    if (from == own || own.is_group()) add(adjoint, terms);
    else if (from.is_group()) add(adjoint, summed(terms, from, true));
    else
      for (const Term& term : terms) add(adjoint, algebra_.sum_along_row(term));
    if (adjoint.size() > 4 * most_terms) write_down(adjoint);
  }

  void write_down(Terms& adjoint) {
    NodeId written = writer_->write(adjoint);
    algebra_.keep_whole(written);
    adjoint.clear();
    add(adjoint, algebra_.term_of(written));
  }

  // The sum of shares inside each group, or over all groups' entries. What is the same in all of them leaves the sum;
  // shares that have the same outside are summed together.
  Terms summed(const Terms& shares, const ColumnSpread& group, bool entries) {
    const NodeId by = value_[group.by];
    const ColumnSpread outside_spread = entries ? per_row : ColumnSpread{group.kind, group.wraps, by};
    struct Sum {
      Term outside;
      Terms inside;
    };
    std::vector<Sum> sums;
    for (const Term& share : shares) {
      Term outside, inside{share.coefficient, {}};
      for (const Factor& factor : share.factors)
        (fits(out_spreads_[factor.node], outside_spread) ? outside : inside).factors.push_back(factor);
      auto same =
          std::find_if(sums.begin(), sums.end(), [&](const Sum& each) { return same_factors(each.outside, outside); });
      if (same == sums.end()) sums.push_back({outside, {inside}});
      else add(same->inside, inside);
    }
    Terms total;
    for (Sum& each : sums) {
      if (each.inside.empty()) continue;
      if (each.inside.size() == 1) std::swap(each.outside.coefficient, each.inside[0].coefficient);
      const NodeId inside = writer_->write(each.inside);
      const NodeId sum = add_group(out_.program, {Op::Sum, group.wraps, entries}, inside, by);
      algebra_.keep_whole(sum);
      each.outside.multiply(sum);
      add(total, each.outside);
    }
    return total;
  }

  Formula expr(NodeId in_id) { return {&out_.program, value_[in_id]}; }
  Term term(NodeId in_id) { return algebra_.term_of(value_[in_id]); }
  NodeId number(double value) { return out_.program.number(value); }

  // Hands a node's adjoint on to its arguments.
  void pass_on(NodeId id) {
    const Node& node = in_[id];
    if (node.arity == 0 || is_column_reduction(node.op)) return;
    if (!shares_[id].empty()) add(adjoint_[id], summed(shares_[id], in_spreads_[id], false));
    if (is_long(adjoint_[id]) || (algebra_.is_whole(value_[id]) && adjoint_[id].size() > 1)) write_down(adjoint_[id]);
    const Terms adjoint = adjoint_[id];
    const NodeId a = node.args[0], b = node.args[1];
    auto give = [&](NodeId arg, const Term& factor) {
      contribute(arg, algebra_.product(adjoint, factor), is_row_reduction(node.op) ? per_element : in_spreads_[id]);
    };
    auto choose = [&](NodeId condition, NodeId where_true, NodeId where_false) {
      give(where_true, algebra_.mask(condition, true));
      give(where_false, algebra_.mask(condition, false));
    };
    switch (node.op) {
      case Op::Add: give(a, {}), give(b, {}); break;
      case Op::Sub: give(a, {}), give(b, {-1, {}}); break;
      case Op::Mul: give(a, term(b)), give(b, term(a)); break;
      case Op::Div:
        give(a, algebra_.inverse_of(value_[b]));
        give(b, Term{-1, {}} * algebra_.inverse_of(value_[b]) * term(id));
        break;
      case Op::Neg: give(a, {-1, {}}); break;
      case Op::Abs: give(a, algebra_.term_of(call("sign", {expr(a)}).id)); break;  // 0 at 0
      case Op::Sqrt: give(a, Term{0.5, {}} * algebra_.inverse_of(value_[id])); break;
      case Op::Fma: give(a, term(b)), give(b, term(a)), give(node.args[2], {}); break;
      case Op::Min: choose((expr(a) <= expr(b)).id, a, b); break;  // equal: to the first
      case Op::Max: choose((expr(b) <= expr(a)).id, a, b); break;
      case Op::Select: choose(value_[a], b, node.args[2]); break;
      case Op::Floor:
      case Op::Round: reached_[a] = true; break;  // 0
      case Op::Cast:
      case Op::CastStochastic:
      case Op::RoundTo: give(a, {}); break;
      case Op::Sum: give(a, {}); break;
      case Op::Mean: give(a, {1, {{out_.program.add(Op::ColumnCount), -1}}}); break;
      case Op::Amax:
      case Op::Amin: share(id, adjoint); break;
      case Op::Group: group(id, adjoint); break;
      case Op::Reduce: give(a, algebra_.term_of(reductions()[node.payload].slope(expr(a), expr(id)).id)); break;
      case Op::ReduceSpread: normalised(id, adjoint); break;
      case Op::Call:
        for (int k = 0; k < node.arity; ++k) {
          Formula slope = derivative(node, id, k);
          if (slope.id != no_node) give(node.args[k], algebra_.term_of(slope.id));
          else reached_[node.args[k]] = true;  // 0
        }
        break;
      case Op::Rotate: rotate_back(node, adjoint); break;
      // No gradient passes a comparison, an index or the bits of a value; a colsum is a result and was seeded.
      case Op::Less:
      case Op::LessEqual:
      case Op::Equal:
      case Op::And:
      case Op::Or:
      case Op::Not:
      case Op::StopGradient:
      case Op::BitsAdd:
      case Op::BitsAnd:
      case Op::BitsOr:
      case Op::BitsShiftLeft:
      case Op::BitsShiftRight:
      case Op::Fold:
      case Op::PickColumn:
      case Op::ColumnSum:
      case Op::ColumnMax:
      case Op::Number:
      case Op::Constant:
      case Op::Operand:
      case Op::RowIndex:
      case Op::ColumnIndex:
      case Op::ColumnCount:
      case Op::Random:
      case Op::Largest: break;
    }
  }

  Formula derivative(const Node& node, NodeId id, int k) {
    std::array<Formula, 3> args;
    for (int each = 0; each < node.arity; ++each) args[each] = expr(node.args[each]);
    return functions()[node.payload].derivative(std::span<const Formula>(args.data(), node.arity), expr(id), k);
  }

  // Shared evenly among the elements that equal the largest (or smallest).
  void share(NodeId id, const Terms& adjoint) {
    NodeId arg = in_[id].args[0];
    if (!in_[arg].by_column) return contribute(arg, adjoint, per_row);
    Term largest = algebra_.mask(equal(expr(arg), expr(id)).id, true);
    Terms shares = algebra_.product(adjoint, largest), count = algebra_.sum_along_row(largest);
    for (Term& each : shares) each.multiply(count[0].factors[0].node, -1);
    contribute(arg, shares, per_element);
  }

  // A reduction inside groups hands the group's adjoint to each of its columns, one over entries the row's to each
  // group.
  void group(NodeId id, const Terms& adjoint) {
    const Node& node = in_[id];
    const GroupReduction kind = group_of(node);
    const NodeId arg = node.args[0];
    const ColumnSpread of{ColumnSpread::Kind::Group, kind.wraps, node.args[1]};
    const ColumnSpread &own = kind.entries ? per_row : of, &from = kind.entries ? of : per_element;
    auto give = [&](const Term& factor) { contribute(arg, algebra_.product(adjoint, factor), from); };
    if (kind.op == Op::Sum) return give({});
    if (kind.op == Op::Mean) {
      const GroupReduction count{Op::Sum, kind.wraps, kind.entries};
      return give({1, {{add_group(out_.program, count, number(1), value_[of.by]), -1}}});
    }
    if (fits(in_spreads_[arg], own)) return contribute(arg, adjoint, own);
    Term largest = algebra_.mask(equal(expr(arg), expr(id)).id, true);
    const Terms count = summed({largest}, of, kind.entries);
    largest.multiply(count[0].factors[0].node, -1);
    give(largest);
  }

  // Of values that sum to 1 along the row: s (g - sum(g y)).
  void normalised(NodeId id, const Terms& adjoint) {
    const Node& node = in_[id];
    const Term slope = algebra_.term_of(reductions()[node.payload].slope(expr(node.args[0]), expr(id)).id);
    Terms shares = algebra_.product(adjoint, slope);
    for (const Term& each : algebra_.product(adjoint, term(id)))
      for (const Term& sum : algebra_.sum_along_row(each))
        for (const Term& share : algebra_.product({sum}, slope)) add(shares, Term{-1, {}} * share);
    contribute(node.args[0], shares, per_element);
  }

  void rotate_back(const Node& node, const Terms& adjoint) {
    NodeId arg = node.args[0], by = value_[node.args[1]];
    if (adjoint.empty() || !in_[arg].by_column) return contribute(arg, adjoint, in_spreads_[arg]);
    NodeId written = writer_->write(adjoint);
    if (out_.program[written].by_column) {
      written = out_.program.add(Op::Rotate, {written, turned_back(by)});
    }
    algebra_.keep_whole(written);
    contribute(arg, {algebra_.term_of(written)}, per_element);
  }

  NodeId turned_back(NodeId by) {
    const Node& node = out_.program[by];
    if (is_half_of_n(by)) return by;
    if (node.op == Op::Neg) return node.args[0];
    if (std::optional<double> columns = as_number(out_.program, by)) return number(-*columns);
    return out_.program.add(Op::Neg, {by});
  }

  // n / 2 columns on or back are the same place.
  bool is_half_of_n(NodeId id) const {
    const Node& node = out_.program[id];
    return node.op == Op::Div && out_.program[node.args[0]].op == Op::ColumnCount &&
           as_number(out_.program, node.args[1]) == 2.0;
  }

  // ---- results ----

  // A term for each element of the row, or of its group, whose sum is the given one.
  Term spread_along_row(NodeId leaf, const Term& term) {
    const ColumnSpread& own = in_spreads_[leaf];
    if (own.is_one()) return algebra_.spread_along_row(term);
    if (own.is_element()) return term;
    const NodeId count = add_group(out_.program, {Op::Sum, own.wraps, false}, number(1), value_[own.by]);
    return term * Term{1, {{count, -1}}};
  }

  Status make_results() {
    Program& out = out_.program;
    std::vector<NodeId> leaves(in_.operands.size(), no_node);
    for (NodeId id = 0; id < in_.size(); ++id)
      if (in_[id].op == Op::Operand && reached_[id]) leaves[in_[id].payload] = id;
    for (std::size_t k = 0; k < in_.operands.size(); ++k) {
      const NodeId leaf = leaves[k];
      if (leaf == no_node) continue;
      const Spread& spread = out.operands[out_.first_operand + k].spread;
      Terms gradient = adjoint_[leaf];
      NodeId value;
      if (!takes_column_sum(spread)) {
        value = writer_->write(gradient);
      } else if (is_of_groups(spread) && !gradient.empty()) {
        add(gradient, summed(shares_[leaf], in_spreads_[leaf], false));
        value = writer_->write(gradient);
      } else {
        Terms spread_out = shares_[leaf];
        for (const Term& each : gradient) add(spread_out, spread_along_row(leaf, each));
        value = out.add(Op::ColumnSum, {writer_->write(spread_out)});
      }
      out.results.push_back({"d" + in_.operands[k].name, spread, value});
    }
    if (!out.results.empty()) return Done{};
    for (const Operand& each : in_.operands)
      if (each.spread.row.picked())
        return Error{Code::Unsupported, in_.name + ": the rows of '" + each.name + "' are picked by '" +
                                            in_.operands[in_[each.spread.row.pick].payload].name +
                                            "', and there is no gradient to a picked table"};
    return Error{Code::InvalidProgram, in_.name +
                                           ": no result depends on an operand in memory in a way that has a "
                                           "gradient"};
  }

  const Program& in_;
  const DifferentiateOptions& options_;
  Backward out_;
  Algebra algebra_;
  std::optional<Writer> writer_;
  std::vector<NodeId> value_;  // of each node of the forward, in the backward
  ColumnSpreads in_spreads_, out_spreads_;
  std::vector<Terms> adjoint_;
  std::vector<Terms> shares_;  // of nodes that are one value a group: what elements have given, not summed yet
  std::vector<bool> reached_, reads_memory_;
};

}  // namespace

Result<Program> differentiate(const Program& program, const DifferentiateOptions& options) {
  std::set<std::string> formulas;  // numbers have no gradient, and who asks for that of their operand gets it
  for (const std::string& name : options.absent) {
    std::optional<std::size_t> operand = program.find_operand(name);
    if (!operand || program.operands[*operand].constant)
      return Error{Code::InvalidArgument,
                   program.name + " has no operand '" + name + "' in memory that could be absent"};
    if (has_expression(program, program.operands[*operand])) formulas.insert(name);
  }
  const Program called = without_absent(program, formulas);
  return Differentiator(called, options).run();
}

DifferentiateOptions options_for(const Program& forward, const Program& backward, const std::set<std::string>& absent) {
  DifferentiateOptions options;
  options.gradients.emplace();
  const std::vector<bool> read = read_operands(backward);
  auto is_cast_to = [&](const std::string& name) {
    for (NodeId id = 0; id < backward.size(); ++id)
      if (names_symbol(backward[id].op) && backward[id].op != Op::Largest &&
          backward.symbols[backward[id].payload] == name)
        return true;
    return false;
  };
  for (const Output& result : forward.results) {
    const std::string name = "d" + result.name;
    const std::optional<std::size_t> k = backward.find_operand(name);
    if (k && (read[*k] || is_cast_to(name))) options.gradients->insert(result.name);
  }
  for (const Operand& operand : forward.operands)
    if (has_expression(forward, operand) && absent.contains(operand.name)) options.absent.insert(operand.name);
  return options;
}

}  // namespace trireme
