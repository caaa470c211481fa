// A number of the oracle: what mathematics gives, and between which values the contract's arithmetic must land.
//
// `value` follows the exact operations in long double; `low` and `high` bound every result that the same operations
// give when each rounds to the compute type T in any way that is at most half a unit of the last place away. They start
// as points (operands and constants are exact) and stay points where nothing can round. Overflow belongs to the
// contract: where T certainly overflows, the value is infinite too. A number of which nothing is certain, not even that
// it is one, is `unknown`.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>

namespace trireme {

using Real = long double;
inline constexpr Real real_infinity = std::numeric_limits<Real>::infinity();

// -0 lies below +0, as in the contract.
inline Real least(Real x, Real y) { return x == y ? (std::signbit(x) ? x : y) : std::min(x, y); }

template <typename T>
struct Bounded {
  Real value = 0, low = 0, high = 0;
  bool unknown = false;

  Bounded() = default;
  explicit Bounded(Real point) : value(point), low(point), high(point) {}

  bool nan() const { return !unknown && std::isnan(value); }  // certainly
  bool point() const { return !unknown && low == high; }
  bool holds(Real x) const { return unknown || (low <= x && x <= high); }
  // One end infinite and the other not: no operation on it is worth bounding.
  bool vague() const { return unknown || (low != high && (std::isinf(low) || std::isinf(high))); }

  static Bounded nothing_known() {
    Bounded out(std::numeric_limits<Real>::quiet_NaN());
    out.unknown = true;
    return out;
  }

  // The three of an exact operation, each of whose ends may be any of the `ends`, before rounding.
  static Bounded exact(Real value, std::initializer_list<Real> ends) {
    Bounded out;
    std::size_t nans = 0;
    for (Real end : ends) nans += std::isnan(end);
    if (nans == ends.size()) return Bounded(std::numeric_limits<Real>::quiet_NaN());
    if (nans > 0) return nothing_known();
    out.low = out.high = *ends.begin();
    for (Real end : ends) {
      out.low = least(out.low, end);
      out.high = -least(-out.high, -end);
    }
    out.value = std::isnan(value) ? out.low : std::clamp(value, out.low, out.high);
    return out;
  }

  // Rounding to T, once, costs at most half a unit of the last place; a little more here, for the roundings of long
  // double itself.
  Bounded rounded() const {
    constexpr Real half_unit = std::numeric_limits<T>::epsilon() / 2 * (1 + 0x1p-9L);
    constexpr Real half_smallest = Real(std::numeric_limits<T>::denorm_min()) / 2;
    if (point() && static_cast<Real>(static_cast<T>(low)) == low) return *this;
    return widened(std::fabs(low) * half_unit + half_smallest, std::fabs(high) * half_unit + half_smallest)
        .with_signs_of(*this);
  }

  // Neither rounding nor an error counted in units of the last place leads across 0.
  Bounded with_signs_of(const Bounded& exact) const {
    Bounded out = *this;
    if (exact.low >= 0) out.low = -least(-out.low, -std::copysign(0.0L, exact.low));
    if (exact.high <= 0) out.high = least(out.high, std::copysign(0.0L, exact.high));
    return out;
  }

  Bounded widened(Real below, Real above) const {
    constexpr Real largest = std::numeric_limits<T>::max(), beyond = largest * (1 + std::numeric_limits<T>::epsilon());
    if (unknown || nan()) return *this;
    // An upper end that leaves T is infinite; one below T is minus infinity only if it is certainly beyond.
    auto upper = [&](Real x) -> Real {
      if (x > largest) return real_infinity;
      return x <= -beyond ? -real_infinity : std::max(x, -largest);
    };
    Bounded out;
    out.low = std::isinf(low) || below == 0 ? low : -upper(below - low);
    out.high = std::isinf(high) || above == 0 ? high : upper(high + above);
    out.value = std::clamp(value, out.low, out.high);
    return out;
  }
};

template <typename T>
Bounded<T> negated(const Bounded<T>& a) {
  Bounded<T> out;
  out.value = -a.value;
  out.low = -a.high;
  out.high = -a.low;
  out.unknown = a.unknown;
  return out;
}

// `exact` results of operations on two numbers; rounded() makes them the contract's.
template <typename T>
Bounded<T> exact_sum(const Bounded<T>& a, const Bounded<T>& b) {
  if (a.nan() || b.nan()) return a.nan() ? a : b;
  if (a.vague() || b.vague()) return Bounded<T>::nothing_known();
  return Bounded<T>::exact(a.value + b.value, {a.low + b.low, a.high + b.high});
}

template <typename T>
Bounded<T> exact_product(const Bounded<T>& a, const Bounded<T>& b) {
  if (a.nan() || b.nan()) return a.nan() ? a : b;
  if (a.vague() || b.vague()) return Bounded<T>::nothing_known();
  // Infinity times something around 0 is anything; at 0 itself the products below are NaN.
  auto infinite_by_around_zero = [](const Bounded<T>& x, const Bounded<T>& y) {
    return std::isinf(x.low) && y.holds(0) && !y.point();
  };
  if (infinite_by_around_zero(a, b) || infinite_by_around_zero(b, a)) return Bounded<T>::nothing_known();
  return Bounded<T>::exact(a.value * b.value, {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
}

template <typename T>
Bounded<T> operator+(const Bounded<T>& a, const Bounded<T>& b) {
  // Adding 0 costs nothing, absent elements of a stripe above all; between two zeros the sign is the sum's.
  bool a_is_zero = a.point() && a.low == 0, b_is_zero = b.point() && b.low == 0;
  if (a_is_zero != b_is_zero) return a_is_zero ? b : a;
  return exact_sum(a, b).rounded();
}

template <typename T>
Bounded<T> operator-(const Bounded<T>& a, const Bounded<T>& b) {
  return a + negated(b);
}

template <typename T>
Bounded<T> operator*(const Bounded<T>& a, const Bounded<T>& b) {
  return exact_product(a, b).rounded();
}

template <typename T>
Bounded<T> operator/(const Bounded<T>& a, const Bounded<T>& b) {
  if (a.nan() || b.nan()) return a.nan() ? a : b;
  // By 0 itself the sign of both decides, if it is certain.
  bool certain_zero = b.point() && std::signbit(b.low) == std::signbit(b.high);
  bool by_around_zero = b.holds(0) && (!certain_zero || (a.holds(0) && !a.point()));
  if (a.vague() || b.vague() || by_around_zero) return Bounded<T>::nothing_known();
  return Bounded<T>::exact(a.value / b.value, {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high})
      .rounded();
}

// The same number times itself, which is never negative.
template <typename T>
Bounded<T> squared(const Bounded<T>& a) {
  if (a.nan() || a.vague()) return a.nan() ? a : Bounded<T>::nothing_known();
  Real least = a.holds(0) ? 0 : std::min(a.low * a.low, a.high * a.high);
  return Bounded<T>::exact(a.value * a.value, {least, std::max(a.low * a.low, a.high * a.high)}).rounded();
}

template <typename T>
Bounded<T> square_root(const Bounded<T>& a) {
  if (a.nan()) return a;
  if (a.vague() || (a.low < 0 && a.high >= 0)) return Bounded<T>::nothing_known();
  return Bounded<T>::exact(std::sqrt(a.value), {std::sqrt(a.low), std::sqrt(a.high)}).rounded();
}

// The smallest number that holds both.
template <typename T>
Bounded<T> either(const Bounded<T>& chosen, const Bounded<T>& other) {
  if (chosen.nan() && other.nan()) return chosen;
  if (chosen.unknown || other.unknown || chosen.nan() || other.nan()) return Bounded<T>::nothing_known();
  Bounded<T> out = chosen;
  out.low = std::min(chosen.low, other.low);
  out.high = std::max(chosen.high, other.high);
  return out;
}

template <typename T>
Bounded<T> smaller(const Bounded<T>& a, const Bounded<T>& b) {
  if (a.nan() || b.nan()) return a.nan() ? a : b;
  if (a.unknown || b.unknown) return Bounded<T>::nothing_known();
  Bounded<T> out;
  out.value = least(a.value, b.value);
  out.low = least(a.low, b.low);
  out.high = least(a.high, b.high);
  return out;
}

template <typename T>
Bounded<T> larger(const Bounded<T>& a, const Bounded<T>& b) {
  return negated(smaller(negated(a), negated(b)));
}

}  // namespace trireme
