// -1, 0 or 1.
#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

// Two products make every number but 0 at least 1 in magnitude; NaN and the sign of zero stay.
Function sign() {
  return {
      .name = "sign",
      .arity = 1,
      .formula = "-1, 0 or 1",
      .expand =
          [](Type compute, std::span<const Formula> x) {
            double large = compute == Type::F64 ? 0x1p1023 : 0x1p127;
            return min(max(x[0] * large * large, -1.0), 1.0);
          },
      .derivative =
          [](std::span<const Formula> x, Formula, int) {
            return Formula{x[0].program, no_node};
          },
      .oracle = [](const auto* x) { return x[0] < 0   ? number_like(x, -1)
                                           : x[0] > 0 ? number_like(x, 1)
                                                      : x[0]; },
      .domain = "all x; sign(-0) is -0",
      .unit = ErrorUnit::Ulp,
      .f32 = {0, 0},
      .f64 = {0, 0},
      .cost_f32 = 4,
      .cost_f64 = 4,
  };
}

}  // namespace trireme::records
