#include "passes/terms.hpp"

#include <algorithm>
#include <cstdlib>

namespace trireme {

int Term::power_of(NodeId node) const {
  for (const Factor& factor : factors)
    if (factor.node == node) return factor.power;
  return 0;
}

bool Term::longer_than(std::size_t most_factors) const {
  std::size_t written = 0;
  for (const Factor& factor : factors) written += static_cast<std::size_t>(std::abs(factor.power));
  return factors.size() > most_factors || written > 4 * most_factors;
}

void Term::multiply(NodeId node, int power) {
  auto it = std::find_if(factors.begin(), factors.end(), [&](const Factor& each) { return each.node == node; });
  if (it == factors.end()) {
    if (power != 0) factors.push_back({node, power});
    return;
  }
  it->power += power;
  if (it->power == 0) factors.erase(it);
}

Term operator*(Term a, const Term& b) {
  a.coefficient *= b.coefficient;
  for (const Factor& factor : b.factors) a.multiply(factor.node, factor.power);
  return a;
}

Terms operator*(Terms sum, const Term& factor) {
  for (Term& term : sum) term = std::move(term) * factor;
  return sum;
}

bool same_factors(const Term& a, const Term& b) {
  return a.factors.size() == b.factors.size() &&
         std::all_of(a.factors.begin(), a.factors.end(),
                     [&](const Factor& factor) { return b.power_of(factor.node) == factor.power; });
}

void add(Terms& sum, const Term& term) {
  if (term.coefficient == 0) return;
  auto it = std::find_if(sum.begin(), sum.end(), [&](const Term& known) { return same_factors(known, term); });
  if (it == sum.end()) {
    sum.push_back(term);
    return;
  }
  it->coefficient += term.coefficient;
  if (it->coefficient == 0) sum.erase(it);
}

void add(Terms& sum, const Terms& more) {
  for (const Term& term : more) add(sum, term);
}

}  // namespace trireme
