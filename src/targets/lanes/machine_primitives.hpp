// The primitives on registers, as the contract has them: each rounds once. Part of machine.cpp.
#pragma once
#include <bit>
#include <cmath>
#include <type_traits>

#include "support/float_types.hpp"
#include "targets/lanes/machine.hpp"

namespace trireme::lanes {

// NaN if either is; -0 below +0.
template <typename T>
T smaller(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <typename T>
T larger(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <typename T>
void Machine<T>::primitive(const Instr& instr, const Active& active) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  auto unary = [&](auto&& of) {
    each_lane(active, [&, dst = lanes(instr.dst), a = lanes(instr.a)](int t) { dst[t] = of(a[t]); });
  };
  auto binary = [&](auto&& of) {
    each_lane(active,
              [&, dst = lanes(instr.dst), a = lanes(instr.a), b = lanes(instr.b)](int t) { dst[t] = of(a[t], b[t]); });
  };
  auto compare = [&](auto&& of) {
    each_lane(active,
              [&, dst = mask(instr.dst), a = lanes(instr.a), b = lanes(instr.b)](int t) { dst[t] = of(a[t], b[t]); });
  };
  auto on_bits = [&](auto&& of) {
    binary([&](T a, T b) {
      return std::bit_cast<T>(static_cast<Bits>(of(std::bit_cast<Bits>(a), std::bit_cast<Bits>(b))));
    });
  };
  auto logical = [&](auto&& of) {
    each_lane(active,
              [&, dst = mask(instr.dst), a = mask(instr.a), b = mask(instr.b)](int t) { dst[t] = of(a[t], b[t]); });
  };

  switch (instr.op) {
    case Op::Add: return binary([](T a, T b) { return a + b; });
    case Op::Sub: return binary([](T a, T b) { return a - b; });
    case Op::Mul: return binary([](T a, T b) { return a * b; });
    case Op::Div: return binary([](T a, T b) { return a / b; });
    case Op::Neg: return unary([](T a) { return -a; });
    case Op::Abs: return unary([](T a) { return std::abs(a); });
    case Op::Sqrt: return unary([](T a) { return std::sqrt(a); });
    case Op::Fma:
      return each_lane(active, [dst = lanes(instr.dst), a = lanes(instr.a), b = lanes(instr.b),
                                c = lanes(instr.c)](int t) { dst[t] = std::fma(a[t], b[t], c[t]); });
    case Op::Min: return binary(smaller<T>);
    case Op::Max: return binary(larger<T>);
    case Op::Floor: return unary([](T a) { return std::floor(a); });
    case Op::Round: return unary([](T a) { return std::nearbyint(a); });  // ContractArithmetic: ties to even
    case Op::Less: return compare([](T a, T b) { return a < b; });
    case Op::LessEqual: return compare([](T a, T b) { return a <= b; });
    case Op::Equal: return compare([](T a, T b) { return a == b; });
    case Op::And: return logical([](bool a, bool b) { return a && b; });
    case Op::Or: return logical([](bool a, bool b) { return a || b; });
    case Op::Not: return each_lane(active, [dst = mask(instr.dst), a = mask(instr.a)](int t) { dst[t] = !a[t]; });
    case Op::Select:
      return each_lane(active, [dst = lanes(instr.dst), a = mask(instr.a), b = lanes(instr.b),
                                c = lanes(instr.c)](int t) { dst[t] = a[t] ? b[t] : c[t]; });
    case Op::BitsAdd: return on_bits([](Bits a, Bits b) { return a + b; });
    case Op::BitsAnd: return on_bits([](Bits a, Bits b) { return a & b; });
    case Op::BitsOr: return on_bits([](Bits a, Bits b) { return a | b; });
    case Op::BitsShiftLeft: return unary([&](T a) { return std::bit_cast<T>(std::bit_cast<Bits>(a) << instr.imm); });
    case Op::BitsShiftRight: return unary([&](T a) { return std::bit_cast<T>(std::bit_cast<Bits>(a) >> instr.imm); });
    case Op::RoundTo: return unary([&](T a) { return through_type(instr.type, a); });
    default: return;  // no primitive; the verifier keeps them out
  }
}

}  // namespace trireme::lanes
