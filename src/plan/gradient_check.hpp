// Derivatives against differences: the gradients that a backward gives, beside what its forward does when operands
// move.
//
// With random numbers c for each gradient that arrives, f(x) = sum(c * results) is one number, and its slope along a
// random direction v is said twice in f64: <dx, v>, and (f(x + h v) - f(x - h v)) / 2h. That needs nothing of what
// differentiate knows, which the oracle of a backward takes as given.
#pragma once
#include <cmath>
#include <string>
#include <string_view>

#include "ir/program.hpp"
#include "problem/problem.hpp"

namespace trireme {

struct GradientCheck {
  std::string skipped;    // why nothing is said; empty where something is
  double derivative = 0;  // <dx, v>, of all operands that have gradients
  double difference = 0;
  double bound = 0;  // how far they may lie apart
  double error() const { return std::fabs(derivative - difference); }
  bool fine() const { return !skipped.empty() || error() <= bound; }
};

// Of a problem line with `backward`, by its shape, constants, seed and what is absent; all but integers are f64.
// `text`: its program's. `backward`: what is checked; unless given, what differentiate derives.
Result<GradientCheck> check_gradient(const Problem& line, std::string_view text, const Program* backward = nullptr);

}  // namespace trireme
