// Sums of products: how a gradient is held until it is written down. Like terms combine, so what cancels is gone.
#pragma once
#include <vector>

#include "ir/node.hpp"

namespace trireme {

struct Factor {
  NodeId node;
  int power;
  bool operator==(const Factor&) const = default;
};

// coefficient * node^power * ...; in order of first use, no node twice, no power 0.
struct Term {
  double coefficient = 1;
  std::vector<Factor> factors;

  int power_of(NodeId node) const;
  bool longer_than(std::size_t most_factors) const;  // or with powers that take much longer to write
  void multiply(NodeId node, int power = 1);
};

using Terms = std::vector<Term>;  // their sum; none: 0

Term operator*(Term a, const Term& b);
Terms operator*(Terms sum, const Term& factor);
bool same_factors(const Term& a, const Term& b);  // in any order

// Adds, combining like terms and dropping what cancels.
void add(Terms& sum, const Term& term);
void add(Terms& sum, const Terms& more);

}  // namespace trireme
