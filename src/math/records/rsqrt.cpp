// 1 / sqrt(x).
#include <cmath>

#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

Function rsqrt() {
  return {
      .name = "rsqrt",
      .arity = 1,
      .formula = "1 / sqrt(x)",
      .expand = [](Type, std::span<const Formula> x) { return 1.0 / sqrt(x[0]); },
      .derivative = [](std::span<const Formula>, Formula y, int) { return -0.5 * (y * y * y); },
      .oracle = [](const auto* x) { return 1 / std::sqrt(x[0]); },
      .domain = "x >= 0; rsqrt(0) is inf, below NaN",
      .unit = ErrorUnit::Ulp,
      .f32 = {1.5, 1.491},
      .f64 = {1.5, 1.491},
      .cost_f32 = 15,
      .cost_f64 = 15,
  };
}

}  // namespace trireme::records
