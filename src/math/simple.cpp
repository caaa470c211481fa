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
  return {"rsqrt",
          1,
          "1 / sqrt(x)",
          [](Type, std::span<const Expr> x) { return 1.0 / sqrt(x[0]); },
          [](std::span<const Expr>, Expr y, int) { return -0.5 * (y * y * y); },
          [](const auto* x) { return 1 / std::sqrt(x[0]); },
          "x >= 0; rsqrt(0) is inf, below NaN",
          ErrorUnit::Ulp,
          {1.5, 0},
          {1.5, 0},
          15,
          15};
}

Function square() {
  return {"square",
          1,
          "x * x",
          [](Type, std::span<const Expr> x) { return x[0] * x[0]; },
          [](std::span<const Expr> x, Expr, int) { return 2.0 * x[0]; },
          [](const auto* x) { return x[0] * x[0]; },
          "all x",
          ErrorUnit::Ulp,
          {0.5, 0},
          {0.5, 0},
          1,
          1};
}

// Two products make every number but 0 at least 1 in magnitude; NaN and the sign of zero stay.
Function sign() {
  return {"sign",
          1,
          "-1, 0 or 1",
          [](Type compute, std::span<const Expr> x) {
            double large = compute == Type::F64 ? 0x1p1023 : 0x1p127;
            return min(max(x[0] * large * large, -1.0), 1.0);
          },
          [](std::span<const Expr> x, Expr, int) {
            return Expr{x[0].program, no_node};
          },
          [](const auto* x) { return x[0] < 0   ? number_like(x, -1)
                                     : x[0] > 0 ? number_like(x, 1)
                                                : x[0]; },
          "all x; sign(-0) is -0",
          ErrorUnit::Ulp,
          {0, 0},
          {0, 0},
          4,
          4};
}

Function relu() {
  return {
      "relu",
      1,
      "max(x, 0)",
      [](Type, std::span<const Expr> x) { return max(x[0], 0.0); },
      [](std::span<const Expr> x, Expr, int) { return select(x[0].number(0) < x[0], x[0].number(1), x[0].number(0)); },
      [](const auto* x) { return x[0] <= 0 ? number_like(x, 0) : x[0]; },
      "all x; its derivative at 0 is 0",
      ErrorUnit::Ulp,
      {0, 0},
      {0, 0},
      1,
      1};
}

Function clamp() {
  return {"clamp",
          3,
          "min(max(x, low), high)",
          [](Type, std::span<const Expr> x) { return min(max(x[0], x[1]), x[2]); },
          [](std::span<const Expr> args, Expr, int k) {
            Expr x = args[0], low = args[1], high = args[2], one = x.number(1), zero = x.number(0);
            if (k == 0) return select(low <= x, select(x <= high, one, zero), zero);
            if (k == 1) return select(x < low, select(low <= high, one, zero), zero);
            return select(high < max(x, low), one, zero);
          },
          [](const auto* x) { return x[0] != x[0] ? x[0] : std::min(std::max(x[0], x[1]), x[2]); },
          "all x; where low > high it is high",
          ErrorUnit::Ulp,
          {0, 0},
          {0, 0},
          2,
          2};
}

}  // namespace trireme::records
