// The arithmetic of the oracle, as RowWalk wants it: every op on bounded numbers.
#pragma once
#include "ir/program.hpp"
#include "layout/elements.hpp"
#include "math/functions.hpp"
#include "reference/bounded.hpp"
#include "reference/oracle.hpp"
#include "reference/row_walk.hpp"

namespace trireme {

template <typename T>
struct OracleNumbers {
  using Value = Bounded<T>;
  static constexpr bool runs_expansions = false;
  const Program& program;
  std::vector<OracleResult>& results;

  bool takes(Op op) const {
    bool on_bits = op >= Op::BitsAdd && op <= Op::BitsShiftRight;
    return (op < Op::ColumnSum && !on_bits) || op == Op::Call || op == Op::Rotate;
  }
  // Constants are what the contract makes of them: rounded to the compute type, and exact from there.
  Value number(double x) const { return Value(static_cast<T>(x)); }
  Value integer(std::int64_t x) const { return Value(static_cast<T>(x)); }
  Value condition(bool x) const { return Value(x); }
  Value load(const Array& array, std::int64_t r, std::int64_t c) const {
    return Value(static_cast<T>(value_at(array, r, c)));
  }
  void store(std::size_t k, std::int64_t r, std::int64_t c, const Value& x) const {
    Type type = *program.results[k].type;
    OracleElement& element = results[k].elements[r * results[k].column_extent + c];
    auto rounded = [&](Real end) { return widen(type, round_to_bits(type, static_cast<double>(end))); };
    // What the type cannot hold is what the store makes of it: 0 for NaN in an integer, an end of a range that
    // saturates.
    Real value = x.value;
    if (!(std::fabs(value) <= facts(type).largest)) value = rounded(x.value);
    element = {value, rounded(x.low), rounded(x.high), x.unknown};
  }
  void apply(const Node& node, const std::array<RowArgument<Value>, 3>& args, std::span<Value> out) const {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = apply(node, args[0][j], args[1][j], args[2][j]);
  }

 private:
  Value apply(const Node& node, const Value& a, const Value& b, const Value& c) const {
    bool same = node.arity == 2 && node.args[0] == node.args[1];
    switch (node.op) {
      case Op::Add: return a + b;
      case Op::Sub: return same && !a.vague() && !std::isinf(a.value) && !a.nan() ? Value(0) : a - b;
      case Op::Mul: return same ? squared(a) : a * b;
      case Op::Div: return a / b;
      case Op::Neg: return negated(a);
      case Op::Abs: return magnitude(a);
      case Op::Sqrt: return square_root(a);
      case Op::Fma: return exact_sum(exact_product(a, b), c).rounded();
      case Op::Min: return smaller(a, b);
      case Op::Max: return larger(a, b);
      case Op::Floor: return monotone(a, [](Real x) { return std::floor(x); });
      case Op::Round: return monotone(a, [](Real x) { return std::nearbyint(x); });
      case Op::RoundTo: return round_to(static_cast<Type>(node.payload), a);
      case Op::Less:
      case Op::LessEqual:
      case Op::Equal: return same && !a.unknown ? condition(node.op != Op::Less && !a.nan()) : compare(node.op, a, b);
      case Op::And: return smaller(a, b);
      case Op::Or: return larger(a, b);
      case Op::Not: return Value(1) - a;
      case Op::Select:
        if (a.point()) return a.low != 0 ? b : c;
        return a.value != 0 ? either(b, c) : either(c, b);
      case Op::Call: return call(functions()[node.payload], {a, b, c});
      default: return Value::nothing_known();  // takes() has refused it
    }
  }

  static Value magnitude(const Value& a) {
    Value out = larger(a, negated(a));
    if (!out.unknown && !out.nan()) out.low = std::max<Real>(out.low, 0);
    return out;
  }

  template <typename Function>
  static Value monotone(const Value& a, Function&& function) {
    if (a.unknown || a.nan()) return a;
    return Value::exact(function(a.value), {function(a.low), function(a.high)});
  }

  // To an integer NaN becomes 0; f8 saturates.
  static Value round_to(Type type, const Value& a) {
    auto rounded = [&](Real x) -> Real {
      return static_cast<T>(widen(type, round_to_bits(type, static_cast<double>(x))));
    };
    return a.nan() ? Value(rounded(a.value)) : monotone(a, rounded);
  }

  // NaN compares as false with everything.
  static Value compare(Op op, const Value& a, const Value& b) {
    if (a.nan() || b.nan()) return Value(0);
    bool yes, no, likely;
    if (op == Op::Less) {
      yes = a.high < b.low, no = a.low >= b.high, likely = a.value < b.value;
    } else if (op == Op::LessEqual) {
      yes = a.high <= b.low, no = a.low > b.high, likely = a.value <= b.value;
    } else {
      yes = a.point() && b.point() && a.low == b.low, no = a.high < b.low || b.high < a.low,
      likely = a.value == b.value;
    }
    if (!a.unknown && !b.unknown && (yes || no)) return Value(yes);
    Value out(likely);
    out.low = 0;
    out.high = 1;
    return out;
  }

  // The function over all that its arguments may be, then the error that its record allows. A few samples stand for all
  // that lies between an argument's bounds. Where these are wide, or the samples turn, the function gets as much room
  // again; otherwise as much as the samples bend, which is more than a turn between two of them can hide.
  static Value call(const Function& function, const std::array<Value, 3>& args) {
    constexpr int samples = 5;
    Real largest_argument = 0, width = 0, y[samples];
    bool exact = true;
    for (int k = 0; k < function.arity; ++k)
      if (args[k].nan()) return args[k];  // every function hands NaN on
    for (int k = 0; k < function.arity; ++k) {
      if (args[k].unknown) return Value::nothing_known();
      largest_argument = std::max({largest_argument, std::fabs(args[k].low), std::fabs(args[k].high)});
      width = std::max(width, args[k].point() ? 0 : args[k].high - args[k].low);
      exact = exact && args[k].point() && std::isinf(args[k].low);  // limits are limits
    }
    auto at = [&](auto&& choose) {
      Real x[3] = {};
      for (int k = 0; k < function.arity; ++k) x[k] = choose(args[k]);
      return function.oracle.f64(x);
    };
    for (int s = 0; s < samples; ++s)
      y[s] = at([&](const Value& a) {
        // Ends first, then between; an infinite end has no middle.
        Real part = Real(s) / (samples - 1), x = a.low + (a.high - a.low) * part;
        return s == 0 ? a.low : s == samples - 1 ? a.high : std::isfinite(x) ? x : a.value;
      });
    Value out = Value::exact(at([](const Value& a) { return a.value; }), {y[0], y[1], y[2], y[3], y[4]});
    // Which of two zeros a clamp picks, the formulas do not say.
    if (function.arity > 1 && out.low == 0) out.low = -0.0L;
    if (function.arity > 1 && out.high == 0) out.high = 0.0L;
    if (out.unknown || out.nan() || exact) return out;
    bool rises = std::is_sorted(y, y + samples), falls = std::is_sorted(std::rbegin(y), std::rend(y));
    bool narrow = width <= largest_argument / 64;
    Real bend = 0;
    for (int s = 1; s + 1 < samples; ++s) bend = std::max(bend, std::fabs(y[s - 1] - 2 * y[s] + y[s + 1]));
    Real room = !narrow || !(rises || falls) ? out.high - out.low : std::isfinite(bend) ? bend : 0;
    Real below = room + error(function, out.low, largest_argument),
         above = room + error(function, out.high, largest_argument);
    Value wide = out.widened(below, above);
    return function.unit == ErrorUnit::Ulp ? wide.with_signs_of(out) : wide;
  }

  static Real error(const Function& function, Real result, Real argument) {
    constexpr Real small = Real(std::numeric_limits<T>::min()) * 2;  // below, errors are absolute
    Real bound = function.accuracy(type_of<T>).bound;
    if (bound == 0 || std::isinf(result)) return 0;
    switch (function.unit) {
      case ErrorUnit::Ulp: bound *= std::fabs(result) * std::numeric_limits<T>::epsilon(); break;
      case ErrorUnit::Argument: bound *= std::isinf(argument) ? 0 : argument; break;
      case ErrorUnit::One: break;
    }
    return std::fabs(result) < small ? std::max(bound, small) : bound;
  }
};

}  // namespace trireme
