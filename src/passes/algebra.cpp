#include "passes/algebra.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "math/functions.hpp"

namespace trireme {
namespace {

// Longer products and sums are taken whole: what differentiate looks for is short, and work stays linear.
constexpr std::size_t most_product_factors = 16;
constexpr std::size_t most_sum_terms = 16;

Term one_factor(NodeId id, int power = 1) { return {1, {{id, power}}}; }

}  // namespace

void Algebra::end_of_forward() {
  NodeId last = static_cast<NodeId>(program_.size());
  for (NodeId id = 0; id < last; ++id) term_of(id);
  forward_end_ = static_cast<NodeId>(program_.size());
}

Term Algebra::term_of(NodeId id) {
  if (id >= terms_.size()) terms_.resize(program_.size()), read_.resize(program_.size());
  if (!read_[id]) {
    Term term = read(id);
    if (term.longer_than(most_product_factors)) term = one_factor(id);
    terms_.resize(program_.size()), read_.resize(program_.size());
    terms_[id] = std::move(term);
    read_[id] = true;
  }
  return terms_[id];
}

void Algebra::keep_whole(NodeId id) {
  if (program_[id].op == Op::Number) return;
  terms_.resize(program_.size()), read_.resize(program_.size());
  terms_[id] = one_factor(id);
  read_[id] = true;
}

Term Algebra::read(NodeId id) {
  const Node node = program_[id];
  switch (node.op) {
    case Op::Number: return std::isfinite(node.number()) ? Term{node.number(), {}} : one_factor(id);
    case Op::Neg: return Term{-1, {}} * term_of(node.args[0]);
    case Op::Mul: return read_product(node.args[0], node.args[1], false);
    case Op::Div: return read_product(node.args[0], node.args[1], true);
    case Op::Sum: return plain_sum(term_of(node.args[0]));
    case Op::Mean: return plain_sum(term_of(node.args[0])) * one_factor(program_.add(Op::ColumnCount), -1);
    case Op::Call:
      if (functions()[node.payload].name == "square") return term_of(node.args[0]) * term_of(node.args[0]);
      return one_factor(id);
    default: return one_factor(id);
  }
}

// Values of two kinds of groups, sums and the like: rows and columns of small matrices, say.
bool Algebra::mixes_groups(const Term& term) {
  std::optional<ColumnSpread> first;
  for (const Factor& factor : term.factors) {
    if (program_[factor.node].op == Op::Operand) continue;
    const ColumnSpread spread = spreads_[factor.node];
    if (!spread.is_group()) continue;
    if (first && *first != spread) return true;
    first = spread;
  }
  return false;
}

// What is normalised by one kind of groups and then by another is a value of its own, as a sum is. Taken apart, every
// step of an iteration would have all factors of the steps before it.
Term Algebra::read_product(NodeId a, NodeId b, bool divided) {
  Term term = term_of(a) * (divided ? inverse_of(b) : term_of(b));
  if (!mixes_groups(term)) return term;
  auto whole = [&](NodeId id) {
    if (!spreads_[id].is_element() || program_[id].arity == 0) return term_of(id);
    wholes_.resize(std::max<std::size_t>(wholes_.size(), id + 1));
    wholes_[id] = true;
    keep_whole(id);
    return one_factor(id);
  };
  const Term left = whole(a);
  if (divided && spreads_[b].is_element()) return left * one_factor(b, -1);
  return left * (divided ? inverse_of(b) : whole(b));
}

Term Algebra::inverse_of(NodeId id) {
  Term term = term_of(id);
  int exponent;
  bool exact = std::fabs(std::frexp(term.coefficient, &exponent)) == 0.5;
  if (!exact && !term.factors.empty()) return one_factor(id, -1);
  if (!exact) return one_factor(program_.number(term.coefficient), -1);  // x / 3, not x * 0.333
  term.coefficient = 1 / term.coefficient;
  for (Factor& factor : term.factors) factor.power = -factor.power;
  return term;
}

Terms Algebra::linear_of(NodeId root) {
  Terms sum;
  std::vector<std::pair<NodeId, double>> open = {{root, 1.0}};
  while (!open.empty()) {
    auto [id, sign] = open.back();
    open.pop_back();
    const Node& node = program_[id];
    if (node.op == Op::Add || node.op == Op::Sub) {
      open.push_back({node.args[1], node.op == Op::Sub ? -sign : sign});
      open.push_back({node.args[0], sign});
    } else if (node.op == Op::Neg) {
      open.push_back({node.args[0], -sign});
    } else {
      add(sum, Term{sign, {}} * term_of(id));
    }
    if (sum.size() + open.size() > most_sum_terms) return {term_of(root)};
  }
  return sum;
}

bool Algebra::is_mask(NodeId id) const {
  const Node& node = program_[id];
  if (node.op != Op::Select) return false;
  std::optional<double> a = as_number(program_, node.args[1]), b = as_number(program_, node.args[2]);
  return a && b && ((*a == 1 && *b == 0) || (*a == 0 && *b == 1));
}

Term Algebra::mask(NodeId condition, bool where_true) {
  NodeId one = program_.number(1), zero = program_.number(0);
  return one_factor(program_.add(Op::Select, {condition, where_true ? one : zero, where_true ? zero : one}));
}

Terms Algebra::product(Terms a, const Term& b) {
  Terms sum;
  for (Term& term : a) {
    Term made = std::move(term) * b;
    for (Factor& factor : made.factors) {
      if (!is_mask(factor.node)) continue;
      factor.power = std::min(factor.power, 1);
      const Node& one = program_[factor.node];
      for (const Factor& other : made.factors) {
        const Node& two = program_[other.node];
        if (is_mask(other.node) && other.node != factor.node && one.args[0] == two.args[0]) made.coefficient = 0;
      }
    }
    add(sum, made);
  }
  return sum;
}

Term Algebra::part(const Term& term, bool by_column) const {
  Term part{by_column ? 1 : term.coefficient, {}};
  for (const Factor& factor : term.factors)
    if (program_[factor.node].by_column == by_column) part.factors.push_back(factor);
  return part;
}

// Equal products (not empty ones) give one node, whatever the order of their factors.
NodeId Algebra::canonical_product(const Term& term) {
  std::vector<Factor> factors = term.factors;
  std::sort(factors.begin(), factors.end(), [](const Factor& a, const Factor& b) {
    return (a.power > 0) != (b.power > 0) ? a.power > 0 : a.node < b.node;
  });
  NodeId made = factors[0].power > 0 ? no_node : program_.number(1);
  for (const Factor& factor : factors)
    for (int k = 0; k < std::abs(factor.power); ++k)
      made = made == no_node ? factor.node : program_.add(factor.power > 0 ? Op::Mul : Op::Div, {made, factor.node});
  return made;
}

Term Algebra::plain_sum(const Term& term) {
  Term outside = row_part(term), inside = element_part(term);
  if (term.coefficient == 0) return {0, {}};
  if (inside.factors.empty()) return outside * one_factor(program_.add(Op::ColumnCount));
  NodeId sum = program_.add(Op::Sum, {canonical_product(inside)});
  bodies_.try_emplace(sum, inside);
  return outside * one_factor(sum);
}

Terms Algebra::sum_along_row(const Term& term) {
  Term inside = element_part(term);
  if (inside.factors.size() == 1 && inside.factors[0].power == 1) {
    Terms parts = linear_of(inside.factors[0].node), total;
    for (const Term& each : parts) add(total, plain_sum(each));
    bool known = parts.size() > 1;
    for (const Term& each : total)
      for (const Factor& factor : each.factors)
        known = known && (program_[factor.node].op != Op::Sum || in_forward(factor.node));
    if (known) return product(std::move(total), row_part(term));
  }
  Terms sum;
  add(sum, plain_sum(term));
  return sum;
}

Term Algebra::spread_along_row(const Term& term) {
  const Factor* best = nullptr;  // a sum that only the backward makes, if there is one: then nobody has to make it
  for (const Factor& factor : term.factors)
    if (factor.power == 1 && body_of(factor.node) && (!best || !in_forward(factor.node))) best = &factor;
  Term made = term;
  if (best) {
    Term body = *body_of(best->node);
    made.multiply(best->node, -1);
    return made * body;
  }
  NodeId count = program_.add(Op::ColumnCount);
  if (term.power_of(count) > 0) return made * one_factor(count, -1);
  return made * mask(program_.add(Op::Equal, {program_.add(Op::ColumnIndex), program_.number(0)}), true);
}

const Term* Algebra::body_of(NodeId sum) const {
  auto it = bodies_.find(sum);
  return it == bodies_.end() ? nullptr : &it->second;
}

}  // namespace trireme
