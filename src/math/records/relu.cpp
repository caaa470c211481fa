// max(x, 0).
#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

Function relu() {
  return {
      .name = "relu",
      .arity = 1,
      .formula = "max(x, 0)",
      .expand = [](Type, std::span<const Formula> x) { return max(x[0], 0.0); },
      .derivative = [](std::span<const Formula> x, Formula,
                       int) { return select(x[0].number(0) < x[0], x[0].number(1), x[0].number(0)); },
      .oracle = [](const auto* x) { return x[0] <= 0 ? number_like(x, 0) : x[0]; },
      .domain = "all x; its derivative at 0 is 0",
      .unit = ErrorUnit::Ulp,
      .f32 = {0, 0},
      .f64 = {0, 0},
      .cost_f32 = 1,
      .cost_f64 = 1,
  };
}

}  // namespace trireme::records
