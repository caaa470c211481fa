// Powers of two beside a number: the scales of OCP's microscaling formats.
#include <cmath>

#include "math/parts.hpp"

namespace trireme::records {
using namespace parts;

namespace {

// The least power that f8e8m0 holds; what is smaller, 0 too, has it.
constexpr double least = 0x1p-127;

// In f32 the least power is subnormal, and its exponent field says nothing: small numbers are scaled before and after.
Formula power_beside(Type compute, Formula x, bool above) {
  const Formula magnitude = abs(x), inside = max(magnitude, least);
  const bool scales = compute == Type::F32;
  const Formula is_small = inside < x.number(1);
  const Formula up = scales ? select(is_small, x.number(0x1p64), x.number(1)) : x.number(1);
  const Formula down = scales ? select(is_small, x.number(0x1p-64), x.number(1)) : x.number(1);
  Formula bits = scales ? inside * up : inside;
  if (above) bits = bits_add(bits, x.number(format(compute).mantissa_mask));
  const Formula power = bits_and(bits, x.number(infinity));
  return select(magnitude < x.number(infinity), scales ? power * down : power, x.number(not_a_number));
}

template <typename T>
T exact_power(const T* x, bool above) {
  const T magnitude = std::fabs(x[0]);
  if (!(magnitude < static_cast<T>(infinity))) return static_cast<T>(not_a_number);
  if (magnitude <= static_cast<T>(least)) return static_cast<T>(least);
  int exponent = 0;
  const bool is_power = std::frexp(magnitude, &exponent) == static_cast<T>(0.5);
  return std::ldexp(static_cast<T>(1), above && !is_power ? exponent : exponent - 1);
}

Formula no_derivative(std::span<const Formula> x, Formula, int) { return {x[0].program, no_node}; }

}  // namespace

Function exponent_ceil() {
  return {
      .name = "exponent_ceil",
      .arity = 1,
      .formula = "the power of two not below \\|x\\|, at least 2^-127",
      .expand = [](Type compute, std::span<const Formula> x) { return power_beside(compute, x[0], true); },
      .derivative = no_derivative,
      .oracle = [](const auto* x) { return exact_power(x, true); },
      .domain = "finite x, else NaN; its derivative is 0",
      .unit = ErrorUnit::Ulp,
      .f32 = {0, 0},
      .f64 = {0, 0},
      .cost_f32 = 11,
      .cost_f64 = 6,
  };
}

Function exponent_floor() {
  return {
      .name = "exponent_floor",
      .arity = 1,
      .formula = "the power of two not above \\|x\\|, at least 2^-127",
      .expand = [](Type compute, std::span<const Formula> x) { return power_beside(compute, x[0], false); },
      .derivative = no_derivative,
      .oracle = [](const auto* x) { return exact_power(x, false); },
      .domain = "finite x, else NaN; its derivative is 0",
      .unit = ErrorUnit::Ulp,
      .f32 = {0, 0},
      .f64 = {0, 0},
      .cost_f32 = 10,
      .cost_f64 = 5,
  };
}

}  // namespace trireme::records
