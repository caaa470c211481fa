// Functions of a few primitives.
#include <algorithm>
#include <cmath>

#include "math/parts.hpp"
#include "math/records.hpp"

namespace trireme::records {
using namespace parts;

namespace {
template <typename T>
T number_like(const T*, int value) {
  return static_cast<T>(value);
}
}  // namespace

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
