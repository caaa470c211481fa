// x between two others.
#include <algorithm>

#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

Function clamp() {
  return {
      .name = "clamp",
      .arity = 3,
      .formula = "min(max(x, low), high)",
      .expand = [](Type, std::span<const Formula> x) { return min(max(x[0], x[1]), x[2]); },
      .derivative =
          [](std::span<const Formula> args, Formula, int k) {
            Formula x = args[0], low = args[1], high = args[2], one = x.number(1), zero = x.number(0);
            if (k == 0) return select(low <= x, select(x <= high, one, zero), zero);
            if (k == 1) return select(x < low, select(low <= high, one, zero), zero);
            return select(high < max(x, low), one, zero);
          },
      .oracle = [](const auto* x) { return x[0] != x[0] ? x[0] : std::min(std::max(x[0], x[1]), x[2]); },
      .domain = "all x; where low > high it is high",
      .unit = ErrorUnit::Ulp,
      .f32 = {0, 0},
      .f64 = {0, 0},
      .cost_f32 = 2,
      .cost_f64 = 2,
  };
}

}  // namespace trireme::records
