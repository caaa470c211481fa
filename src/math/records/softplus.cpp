// The logarithm of 1 + e^x. Coefficients: tools/coefficients/fit.py.
#include <cmath>

#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

// max(x, 0) + log1p(e) with e = exp(-|x|) in [0, 1]; in f32 log1p(e) = e p(e), which needs no range of its own.
// The maximum is with -0: that is one instruction on every target, and what is added to it is never below +0.
Function softplus() {
  return {
      .name = "softplus",
      .arity = 1,
      .formula = "ln(1 + e^x)",
      .expand =
          [](Type compute, std::span<const Formula> x) {
            static constexpr double f32[] = {1,
                                             -0x1.ffff14p-2,
                                             0x1.5535dep-2,
                                             -0x1.fd1368p-3,
                                             0x1.884554p-3,
                                             -0x1.19af9p-3,
                                             0x1.447088p-4,
                                             -0x1.eca3dap-6,
                                             0x1.5fa142p-8};
            Formula e = exp_clamped(compute, max(minus_abs(x[0]), exp_lowest(compute)));
            Formula above = max(x[0], -0.0);
            if (compute == Type::F64) return above + log1p_any(compute, e);
            return fma(e, polynomial(e, f32), above);
          },
      .derivative = [](std::span<const Formula> x, Formula, int) { return call("sigmoid", {x[0]}); },
      .oracle =
          [](const auto* x) {
            return std::fmax(x[0], 0) + std::log1p(std::exp(-std::fabs(x[0]))) + (x[0] != x[0] ? x[0] : 0);
          },
      .domain = "all x; +0 where the value is below 2^-125.5 (f64: 2^-1021.5)",
      .unit = ErrorUnit::Ulp,
      .f32 = {2.5, 2.442},
      .f64 = {3, 1.99},
      .cost_f32 = 24,
      .cost_f64 = 61,
  };
}

}  // namespace trireme::records
