// Writes graphs as formulas: `Expr` is a node of a program under construction, and the operators add nodes.
#pragma once
#include "ir/program.hpp"

namespace trireme {

struct Expr {
  Program* program = nullptr;
  NodeId id = no_node;

  Expr with(Op op, std::initializer_list<NodeId> args, std::int64_t payload = 0) const {
    return {program, program->add(op, args, payload)};
  }
  Expr number(double value) const { return {program, program->number(value)}; }
};

inline Expr operator+(Expr a, Expr b) { return a.with(Op::Add, {a.id, b.id}); }
inline Expr operator-(Expr a, Expr b) { return a.with(Op::Sub, {a.id, b.id}); }
inline Expr operator*(Expr a, Expr b) { return a.with(Op::Mul, {a.id, b.id}); }
inline Expr operator/(Expr a, Expr b) { return a.with(Op::Div, {a.id, b.id}); }
inline Expr operator+(Expr a, double b) { return a + a.number(b); }
inline Expr operator-(Expr a, double b) { return a - a.number(b); }
inline Expr operator*(Expr a, double b) { return a * a.number(b); }
inline Expr operator/(Expr a, double b) { return a / a.number(b); }
inline Expr operator+(double a, Expr b) { return b.number(a) + b; }
inline Expr operator-(double a, Expr b) { return b.number(a) - b; }
inline Expr operator*(double a, Expr b) { return b.number(a) * b; }
inline Expr operator/(double a, Expr b) { return b.number(a) / b; }
inline Expr operator-(Expr a) { return a.with(Op::Neg, {a.id}); }
inline Expr operator<(Expr a, Expr b) { return a.with(Op::Less, {a.id, b.id}); }
inline Expr operator<=(Expr a, Expr b) { return a.with(Op::LessEqual, {a.id, b.id}); }
inline Expr equal(Expr a, Expr b) { return a.with(Op::Equal, {a.id, b.id}); }
inline Expr abs(Expr a) { return a.with(Op::Abs, {a.id}); }
inline Expr sqrt(Expr a) { return a.with(Op::Sqrt, {a.id}); }
inline Expr floor(Expr a) { return a.with(Op::Floor, {a.id}); }
inline Expr round(Expr a) { return a.with(Op::Round, {a.id}); }
inline Expr fma(Expr a, Expr b, Expr c) { return a.with(Op::Fma, {a.id, b.id, c.id}); }
inline Expr fma(Expr a, Expr b, double c) { return fma(a, b, a.number(c)); }
inline Expr fma(Expr a, double b, double c) { return fma(a, a.number(b), a.number(c)); }
inline Expr fma(Expr a, double b, Expr c) { return fma(a, a.number(b), c); }
inline Expr min(Expr a, Expr b) { return a.with(Op::Min, {a.id, b.id}); }
inline Expr max(Expr a, Expr b) { return a.with(Op::Max, {a.id, b.id}); }
inline Expr min(Expr a, double b) { return min(a, a.number(b)); }
inline Expr max(Expr a, double b) { return max(a, a.number(b)); }
inline Expr select(Expr condition, Expr a, Expr b) { return a.with(Op::Select, {condition.id, a.id, b.id}); }
inline Expr bits_add(Expr a, Expr b) { return a.with(Op::BitsAdd, {a.id, b.id}); }
inline Expr bits_and(Expr a, Expr b) { return a.with(Op::BitsAnd, {a.id, b.id}); }
inline Expr bits_or(Expr a, Expr b) { return a.with(Op::BitsOr, {a.id, b.id}); }
inline Expr bits_shift_left(Expr a, int by) { return a.with(Op::BitsShiftLeft, {a.id}, by); }
inline Expr bits_shift_right(Expr a, int by) { return a.with(Op::BitsShiftRight, {a.id}, by); }
inline Expr sum(Expr a) { return a.with(Op::Sum, {a.id}); }
inline Expr column_sum(Expr a) { return a.with(Op::ColumnSum, {a.id}); }

}  // namespace trireme
