// x * x.
#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

Function square() {
  return {
      .name = "square",
      .arity = 1,
      .formula = "x * x",
      .expand = [](Type, std::span<const Formula> x) { return x[0] * x[0]; },
      .derivative = [](std::span<const Formula> x, Formula, int) { return 2.0 * x[0]; },
      .oracle = [](const auto* x) { return x[0] * x[0]; },
      .domain = "all x",
      .unit = ErrorUnit::Ulp,
      .f32 = {0.5, 0.5},
      .f64 = {0.5, 0.5},
      .cost_f32 = 1,
      .cost_f64 = 1,
  };
}

}  // namespace trireme::records
