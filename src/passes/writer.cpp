#include "passes/writer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace trireme {
namespace {

Term only_coefficient(double value) { return {value, {}}; }

// What both have, with the smaller power.
Term common(const Term& a, const Term& b) {
  Term both;
  for (const Factor& factor : a.factors) {
    int power = b.power_of(factor.node);
    if ((power > 0) != (factor.power > 0) || power == 0) continue;
    both.factors.push_back({factor.node, std::abs(power) < std::abs(factor.power) ? power : factor.power});
  }
  return both;
}

Term without(Term term, const Term& factors) {
  for (const Factor& factor : factors.factors) term.multiply(factor.node, -factor.power);
  return term;
}

bool is_one(const Terms& outer) {
  return outer.size() == 1 && outer[0].factors.empty() && std::fabs(outer[0].coefficient) == 1;
}

}  // namespace

NodeId Writer::write(const Terms& terms) {
  Terms ready;
  bool rows = true;
  for (const Term& term : terms) add(ready, prepared(term));
  for (const Term& term : ready) rows = rows && algebra_.element_part(term).factors.empty();
  Signed value = sum_of(std::move(ready), rows);
  if (!value.negative) return value.node;
  const Node top = program_[value.node];
  if (top.op == Op::Number) return program_.number(-top.number());
  if (top.op == Op::Mul && top.by_column)  // the sign goes to the factor that is not per element
    for (int k : {0, 1})
      if (!program_[top.args[k]].by_column) return node(Op::Mul, program_.add(Op::Neg, {top.args[k]}), top.args[1 - k]);
  return program_.add(Op::Neg, {value.node});
}

// ---- reductions ----

Writer::Signed Writer::reduce(Op op, const Terms& body) {
  Signed inside = sum_of(body, false);
  NodeId id = program_.add(op, {inside.node});
  reductions_.try_emplace(id, Reduction{op, body});
  return {id, inside.negative};
}

// a * sum(u) + a * sum(v) = a * sum(u + v): one reduction instead of two.
Terms Writer::merged(Terms rows) {
  auto reduction_in = [&](const Term& term, const Term& other) -> const Factor* {
    for (const Factor& factor : term.factors)
      if (factor.power == 1 && reductions_.contains(factor.node) && other.power_of(factor.node) == 0) return &factor;
    return nullptr;
  };
  for (std::size_t a = 0; a < rows.size(); ++a)
    for (std::size_t b = a + 1; b < rows.size(); ++b) {
      const Factor *one = reduction_in(rows[a], rows[b]), *two = reduction_in(rows[b], rows[a]);
      if (!one || !two) continue;
      Term rest = without(rows[a], {1, {*one}});
      const Reduction &first = reductions_.at(one->node), &second = reductions_.at(two->node);
      if (first.op != second.op || !same_factors(rest, without(rows[b], {1, {*two}}))) continue;
      Terms body = first.body;
      add(body, second.body * only_coefficient(rows[b].coefficient / rows[a].coefficient));
      Signed sum = reduce(first.op, body);
      if (sum.negative) rest.coefficient = -rest.coefficient;
      rest.multiply(sum.node);
      rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(b));
      rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(a));
      rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(a), rest);
      return merged(std::move(rows));
    }
  return rows;
}

// ---- sums ----

std::vector<Writer::Group> Writer::grouped(const Terms& terms, bool rows) {
  std::vector<Group> groups;
  for (const Term& term : terms) {
    Term inner, outer = only_coefficient(term.coefficient);
    for (const Factor& factor : term.factors) {
      bool inside = rows || algebra_.by_column(factor.node) || algebra_.is_mask(factor.node);
      (inside ? inner : outer).factors.push_back(factor);
    }
    auto it =
        std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return same_factors(each.inner, inner); });
    if (it == groups.end()) groups.push_back({inner, {outer}});
    else add(it->outer, outer);
  }
  std::erase_if(groups, [](const Group& group) { return group.outer.empty(); });
  if (!rows)
    for (Group& group : groups) group.outer = merged(std::move(group.outer));
  return groups;
}

// `rows`: all factors are inner ones; otherwise those that differ along the row, and the masks that guard them.
Writer::Signed Writer::sum_of(Terms terms, bool rows) {
  if (rows) terms = merged(std::move(terms));
  std::vector<Group> groups = grouped(terms, rows);
  if (groups.empty()) return {program_.number(0), false};
  if (groups.size() == 1) return product_of(groups[0]);

  Shared shared;
  if (!find_shared(groups, shared)) {
    std::vector<Signed> values;
    for (const Group& group : groups) values.push_back(product_of(group));
    return added(values);
  }

  // The terms that share factors become one: (their sum without them) * the factors.
  Terms inside, all;
  std::size_t place = groups.size();
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (shared.groups[k]) place = std::min(place, k);
    for (const Term& outer : groups[k].outer) {
      Term term = groups[k].inner * outer;
      if (shared.groups[k]) inside.push_back(without(std::move(term), shared.factors));
    }
  }
  Signed factored = sum_of(std::move(inside), rows);
  factored.node = shared.inner ? this->factored(factored.node, shared.factors)
                               : node(Op::Mul, product_of({shared.factors, {Term{}}}).node, factored.node);
  algebra_.keep_whole(factored.node);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (k == place) all.push_back({factored.negative ? -1.0 : 1.0, {{factored.node, 1}}});
    if (shared.groups[k]) continue;
    for (const Term& outer : groups[k].outer) all.push_back(groups[k].inner * outer);
  }
  return all.size() == 1 ? factored : sum_of(std::move(all), rows);
}

// The factor that most groups share, inner ones first; then all that those groups share with it.
bool Writer::find_shared(const std::vector<Group>& groups, Shared& best) {
  std::size_t most = 1;
  auto outer_common = [](const Group& group) {
    Term all = Term{1, group.outer[0].factors};
    for (const Term& each : group.outer) all = common(all, each);
    return all;
  };
  std::vector<Term> outers;
  for (const Group& group : groups) outers.push_back(outer_common(group));

  for (bool inner : {true, false})
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const Term& own = inner ? groups[k].inner : outers[k];
      for (const Factor& factor : own.factors) {
        Shared found{own, std::vector<bool>(groups.size()), inner};
        std::size_t count = 0;
        for (std::size_t other = 0; other < groups.size(); ++other) {
          const Term& theirs = inner ? groups[other].inner : outers[other];
          int power = theirs.power_of(factor.node);
          if (power == 0 || (power > 0) != (factor.power > 0)) continue;
          found.groups[other] = true;
          found.factors = common(found.factors, theirs);
          ++count;
        }
        keep_guards(groups, found);
        if (count <= most || found.factors.factors.empty()) continue;
        if (!inner) {
          // Element multiplications with the row factors outside, and with them left where they are.
          std::size_t outside = 1, inside = 0;
          for (std::size_t other = 0; other < groups.size(); ++other) {
            if (!found.groups[other] || groups[other].inner.factors.empty()) continue;
            inside += 1;
            Terms rest = groups[other].outer;
            for (Term& term : rest) term = without(term, found.factors);
            outside += !is_one(rest);
          }
          if (outside > inside) continue;
        }
        most = count;
        best = std::move(found);
      }
    }
  return most > 1;
}

// A mask guards the factors beside it (select(0 < x, dy / x, 0)): while it stays inside, only the gradient may leave.
void Writer::keep_guards(const std::vector<Group>& groups, Shared& shared) {
  bool guarded = false;
  for (std::size_t k = 0; k < groups.size(); ++k)
    for (const Factor& factor : groups[k].inner.factors)
      guarded = guarded || (shared.groups[k] && algebra_.is_mask(factor.node) && !shared.factors.power_of(factor.node));
  if (!guarded) return;
  std::erase_if(shared.factors.factors, [&](const Factor& factor) {
    return factor.power < 0 || (!algebra_.is_mask(factor.node) && !reads_gradient(factor.node));
  });
}

// Starts from a positive value, so that signs become subtractions.
Writer::Signed Writer::added(const std::vector<Signed>& values) {
  auto first = std::find_if(values.begin(), values.end(), [](const Signed& each) { return !each.negative; });
  if (first == values.end()) first = values.begin();
  NodeId sum = first->node;
  for (auto it = values.begin(); it != values.end(); ++it)
    if (it != first) sum = node(it->negative == first->negative ? Op::Add : Op::Sub, sum, it->node);
  return {sum, first->negative};
}

// ---- products ----

bool Writer::reads_gradient(NodeId wanted) {
  for (NodeId id = static_cast<NodeId>(reads_gradient_.size()); id <= wanted; ++id) {
    const Node& node = program_[id];
    bool reads = node.op == Op::Operand && static_cast<std::size_t>(node.payload) < gradients_;
    for (NodeId arg : node) reads = reads || reads_gradient_[arg];
    reads_gradient_.push_back(reads);
  }
  return reads_gradient_[wanted];
}

// The gradient comes first, then what it is multiplied by: products of both kinds then begin alike, and are shared.
NodeId Writer::factored(NodeId inside, const Term& factors) {
  bool single =
      factors.factors.size() == 1 && factors.factors[0].power == 1 && !algebra_.is_mask(factors.factors[0].node);
  if (single) return node(Op::Mul, factors.factors[0].node, inside);
  Term plain, masks;
  bool gradient = false;
  for (const Factor& factor : factors.factors) {
    (algebra_.is_mask(factor.node) ? masks : plain).factors.push_back(factor);
    gradient = gradient || (factor.power > 0 && reads_gradient(factor.node));
  }
  if (!gradient || reads_gradient(inside)) return times(inside, factors);
  return masked(node(Op::Mul, product_of({plain, {Term{}}}).node, inside), masks);
}

// An element is multiplied by the reciprocal of its group's value: one division a group, not one an element.
NodeId Writer::times(NodeId value, const Term& factors) {
  for (const Factor& factor : factors.factors) {
    const bool shared = factor.power < 0 && spreads_[factor.node].is_group() && spreads_[value].is_element();
    const NodeId by = shared ? node(Op::Div, program_.number(1), factor.node) : factor.node;
    for (int k = 0; k < std::abs(factor.power) && !algebra_.is_mask(factor.node); ++k)
      value = node(factor.power > 0 || shared ? Op::Mul : Op::Div, value, by);
  }
  return masked(value, factors);
}

NodeId Writer::masked(NodeId value, const Term& factors) {
  NodeId zero = program_.number(0);
  for (const Factor& factor : factors.factors) {
    if (!algebra_.is_mask(factor.node)) continue;
    const Node select = program_[factor.node];
    bool where_true = as_number(program_, select.args[1]) == 1.0;
    value = program_.add(Op::Select, {select.args[0], where_true ? value : zero, where_true ? zero : value});
  }
  return value;
}

Writer::Signed Writer::product_of(const Group& group) {
  Signed scale{no_node, false};
  if (group.outer.size() == 1 && group.outer[0].factors.empty()) {
    double coefficient = group.outer[0].coefficient;
    scale.negative = coefficient < 0;
    if (std::fabs(coefficient) != 1) scale.node = program_.number(std::fabs(coefficient));
  } else {
    scale = sum_of(group.outer, true);
  }

  // From the first factor that is not a divisor on, left to right.
  NodeId made = no_node;
  Term rest = group.inner;
  for (const Factor& factor : group.inner.factors) {
    if (factor.power < 0 || algebra_.is_mask(factor.node)) continue;
    made = factor.node;
    rest.multiply(factor.node, -1);
    break;
  }
  Term plain, masks;
  for (const Factor& factor : rest.factors) (algebra_.is_mask(factor.node) ? masks : plain).factors.push_back(factor);
  if (made == no_node) {
    made = scale.node != no_node ? scale.node : program_.number(1);
    scale.node = no_node;
  }
  made = times(made, plain);
  if (scale.node != no_node) {
    bool number_first = program_[scale.node].op == Op::Number;
    made = number_first ? node(Op::Mul, scale.node, made) : node(Op::Mul, made, scale.node);
  }
  return {masked(made, masks), scale.negative};
}

}  // namespace trireme
