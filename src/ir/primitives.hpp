// What each primitive does to numbers of the compute type: the one definition, for the reference and for folding.
// T is float or double. Whoever calls holds ContractArithmetic and is compiled without contraction.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ir/node.hpp"
#include "support/float_types.hpp"

namespace trireme {

template <typename T>
constexpr Type type_of = std::is_same_v<T, double> ? Type::F64 : Type::F32;

template <typename T>
using BitsOf = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;

// NaN if either is; -0 lies below +0.
template <typename T>
T smaller(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <typename T>
T larger(T a, T b) {
  return -smaller(-a, -b);
}

// Conditions are 1 and 0. Leaves, reductions and composed nodes are not primitives of numbers and give NaN.
// Inlined, so that a loop over numbers with a constant op has no switch inside.
template <typename T>
[[gnu::always_inline]] inline T apply_primitive(Op op, std::int64_t payload, T a, T b, T c) {
  using Bits = BitsOf<T>;
  auto bits = [](T value) { return std::bit_cast<Bits>(value); };
  auto value = [](Bits bits) { return std::bit_cast<T>(bits); };
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::Neg: return -a;
    case Op::Abs: return std::fabs(a);
    case Op::Sqrt: return std::sqrt(a);
    case Op::Fma: return std::fma(a, b, c);
    case Op::Min: return smaller(a, b);
    case Op::Max: return larger(a, b);
    case Op::Floor: return std::floor(a);
    case Op::Round: return std::nearbyint(a);
    case Op::Less: return a < b;
    case Op::LessEqual: return a <= b;
    case Op::Equal: return a == b;
    case Op::And: return a != 0 && b != 0;
    case Op::Or: return a != 0 || b != 0;
    case Op::Not: return a == 0;
    case Op::Select: return a != 0 ? b : c;
    case Op::BitsAdd: return value(bits(a) + bits(b));
    case Op::BitsAnd: return value(bits(a) & bits(b));
    case Op::BitsOr: return value(bits(a) | bits(b));
    case Op::BitsShiftLeft: return value(bits(a) << payload);
    case Op::BitsShiftRight: return value(bits(a) >> payload);
    case Op::RoundTo: return through_type(static_cast<Type>(payload), a);
    case Op::Random:
    case Op::Number:
    case Op::Constant:
    case Op::Operand:
    case Op::RowIndex:
    case Op::ColumnIndex:
    case Op::ColumnCount:
    case Op::Sum:
    case Op::Amax:
    case Op::Amin:
    case Op::Fold:
    case Op::Group:
    case Op::PickColumn:
    case Op::ColumnSum:
    case Op::ColumnMax:
    case Op::Mean:
    case Op::Reduce:
    case Op::ReduceSpread:
    case Op::Call:
    case Op::Cast:
    case Op::CastStochastic:
    case Op::Largest:
    case Op::Rotate:
    case Op::StopGradient: break;
  }
  return std::numeric_limits<T>::quiet_NaN();
}

template <typename T>
T apply_primitive(const Node& node, T a, T b, T c) {
  return apply_primitive<T>(node.op, node.payload, a, b, c);
}

}  // namespace trireme
