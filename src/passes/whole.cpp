// The part of the writer that finds values of the forward inside a gradient and uses them whole.
#include <algorithm>
#include <cmath>

#include "math/functions.hpp"
#include "passes/writer.hpp"

namespace trireme {
namespace {

bool is_call(const Program& program, NodeId id, std::string_view name) {
  return program[id].op == Op::Call && functions()[program[id].payload].name == name;
}

bool contains(const Term& term, const Term& parts) {
  return std::all_of(parts.factors.begin(), parts.factors.end(), [&](const Factor& part) {
    int power = term.power_of(part.node);
    return part.power > 0 ? power >= part.power : power <= part.power;
  });
}

// The ratio of a sum's terms to the parts', if all parts occur in it alike.
double common_ratio(const Terms& sum, const Terms& parts) {
  double ratio = 0;
  for (const Term& part : parts) {
    auto it = std::find_if(sum.begin(), sum.end(), [&](const Term& term) { return same_factors(term, part); });
    if (it == sum.end()) return 0;
    double each = it->coefficient / part.coefficient;
    if (ratio != 0 && each != ratio) return 0;
    ratio = each;
  }
  return ratio;
}

}  // namespace

Writer::Writer(Algebra& algebra, const std::vector<bool>& forward, std::size_t gradients)
    : algebra_(algebra), program_(algebra.program()), forward_(forward), gradients_(gradients) {
  forward_.resize(algebra.forward_end());
  find_wholes(forward_);
}

bool Writer::scales(NodeId row, NodeId element) const {
  const Node& factor = program_[row];
  return !factor.by_column && factor.by_row && factor.arity > 0 && program_[element].by_column;
}

// Quotients; products of elements and a value computed for their row (x * rstd is of moderate size where x and rstd *
// rstd need not be); reductions that the algebra took apart.
void Writer::find_wholes(const std::vector<bool>& forward) {
  for (NodeId id = 0; id < forward.size(); ++id) {
    if (!forward[id]) continue;
    const Node node = program_[id];
    if (is_call(program_, id, "log")) {
      Term inside = algebra_.term_of(node.args[0]);
      if (inside.coefficient == 1 && inside.factors.size() == 1 && inside.factors[0].power == 1)
        logarithms_.emplace(inside.factors[0].node, id);
    }
    bool scaled = node.op == Op::Mul && (scales(node.args[0], node.args[1]) || scales(node.args[1], node.args[0]));
    if (!scaled && node.op != Op::Div && node.op != Op::Sum && node.op != Op::Mean) continue;
    Term parts = with_wholes(algebra_.term_of(id));
    if (parts.coefficient == 1 && parts.factors.size() > 1) {
      NodeId key = 0;
      bool by_row = false, by_column = false;
      for (const Factor& factor : parts.factors) {
        key = std::max(key, factor.node);
        by_row |= program_[factor.node].by_row, by_column |= program_[factor.node].by_column;
      }
      // In `j / (r * j)` the algebra has cancelled j: what is left is spread less than the whole.
      if (by_row == node.by_row && by_column == node.by_column) wholes_[key].push_back({id, parts});
    }
  }
  if (logarithms_.empty()) return;
  for (NodeId id = 0; id < forward.size(); ++id)
    if (forward[id] && (program_[id].op == Op::Add || program_[id].op == Op::Sub)) {
      Terms parts = algebra_.linear_of(id);
      bool by_column = false;
      for (const Term& part : parts)
        for (const Factor& factor : part.factors) by_column |= program_[factor.node].by_column;
      if (parts.size() < 2 || by_column != program_[id].by_column) continue;
      for (const Term& part : parts)
        if (part.factors.size() == 1 && part.factors[0].power == 1 && is_call(program_, part.factors[0].node, "log"))
          whole_sums_[part.factors[0].node].push_back({id, parts});
    }
}

Term Writer::with_wholes(Term term) const {
  for (std::size_t k = 0; k < term.factors.size();) {
    const Whole* found = nullptr;
    auto it = wholes_.find(term.factors[k].node);
    if (it != wholes_.end())
      for (const Whole& whole : it->second)
        if (contains(term, whole.parts)) {
          found = &whole;
          break;
        }
    if (!found) {
      ++k;
      continue;
    }
    // The whole stands where its first part of the same spread stood.
    bool by_column = program_[found->node].by_column;
    auto place = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& factor) {
      return found->parts.power_of(factor.node) != 0 && program_[factor.node].by_column == by_column;
    });
    std::vector<Factor> before(term.factors.begin(), place), after(place, term.factors.end());
    Term changed{term.coefficient, std::move(before)};
    changed.multiply(found->node);
    for (const Factor& factor : after) changed.multiply(factor.node, factor.power);
    for (const Factor& part : found->parts.factors) changed.multiply(part.node, -part.power);
    term = std::move(changed);
    k = 0;
  }
  return term;
}

// The longest sum of the forward that takes the logarithm in: m + log(s) becomes lse.
Terms Writer::with_whole_sum(Terms sum, NodeId logarithm) const {
  auto it = whole_sums_.find(logarithm);
  if (it == whole_sums_.end()) return sum;
  const WholeSum* best = nullptr;
  for (const WholeSum& whole : it->second)
    if ((!best || whole.parts.size() > best->parts.size()) && common_ratio(sum, whole.parts) != 0) best = &whole;
  if (!best) return sum;
  double ratio = common_ratio(sum, best->parts);
  for (const Term& part : best->parts) add(sum, Term{-ratio, {}} * part);
  add(sum, Term{ratio, {{best->node, 1}}});
  return sum;
}

// exp(a) * s^p = exp(a + p * log(s)), where the forward has log(s) and the exponent becomes a short one:
// exp(x - max) / sum is exp(x - lse).
Term Writer::with_exponents(Term term) {
  if (logarithms_.empty()) return term;
  for (std::size_t k = 0; k < term.factors.size(); ++k) {
    const Factor power = term.factors[k];
    if (power.power != 1 || !is_call(program_, power.node, "exp")) continue;
    for (const Factor scale : std::vector<Factor>(term.factors)) {
      auto it = logarithms_.find(scale.node);
      if (it == logarithms_.end()) continue;
      Terms exponent = algebra_.linear_of(program_[power.node].args[0]);
      Term logarithm{static_cast<double>(scale.power), {{it->second, 1}}};
      add(exponent, logarithm);
      exponent = with_whole_sum(std::move(exponent), it->second);
      if (exponent.size() > 2) continue;
      Signed inside = sum_of(exponent, false);
      NodeId argument = inside.negative ? program_.add(Op::Neg, {inside.node}) : inside.node;
      term.multiply(scale.node, -scale.power);
      for (Factor& factor : term.factors)
        if (factor.node == power.node) factor.node = program_.add(Op::Call, {argument}, program_[power.node].payload);
      return with_exponents(std::move(term));
    }
  }
  return term;
}

// Row factors go into a sum where they complete a value of the forward: rstd * sum(g * x) is sum(g * (x * rstd)).
// A sum over n is a mean.
Term Writer::with_sums(Term term) {
  NodeId count = program_.add(Op::ColumnCount);
  for (const Factor factor : std::vector<Factor>(term.factors)) {
    const Term* body = algebra_.body_of(factor.node);
    if (!body || program_[factor.node].op != Op::Sum || (factor.node < forward_.size() && forward_[factor.node]))
      continue;
    Term inside = *body, rest = term;
    rest.multiply(factor.node, -factor.power);
    if (factor.power == 1) {
      for (const Factor& each : algebra_.row_part(rest).factors) {
        inside.multiply(each.node, each.power);
        rest.multiply(each.node, -each.power);
      }
    }
    inside = with_wholes(with_exponents(std::move(inside)));
    Op op = Op::Sum;
    if (inside.power_of(count) < 0) {
      op = Op::Mean;
      inside.multiply(count);
    }
    term = rest * algebra_.row_part(inside);
    term.multiply(reduce(op, {algebra_.element_part(inside)}).node, factor.power);
  }
  return term;
}

Term Writer::prepared(const Term& term) { return with_sums(with_wholes(with_exponents(term))); }

}  // namespace trireme
