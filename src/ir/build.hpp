// Writes graphs as formulas: `Formula` is a node of a program under construction, and the operators add nodes.
#pragma once
#include "ir/program.hpp"

namespace trireme {

struct Formula {
  Program* program = nullptr;
  NodeId id = no_node;

  Formula with(Op op, std::initializer_list<NodeId> args, std::int64_t payload = 0) const {
    return {program, program->add(op, args, payload)};
  }
  Formula number(double value) const { return {program, program->number(value)}; }
};

inline Formula operator+(Formula a, Formula b) { return a.with(Op::Add, {a.id, b.id}); }
inline Formula operator-(Formula a, Formula b) { return a.with(Op::Sub, {a.id, b.id}); }
inline Formula operator*(Formula a, Formula b) { return a.with(Op::Mul, {a.id, b.id}); }
inline Formula operator/(Formula a, Formula b) { return a.with(Op::Div, {a.id, b.id}); }
inline Formula operator+(Formula a, double b) { return a + a.number(b); }
inline Formula operator-(Formula a, double b) { return a - a.number(b); }
inline Formula operator*(Formula a, double b) { return a * a.number(b); }
inline Formula operator/(Formula a, double b) { return a / a.number(b); }
inline Formula operator+(double a, Formula b) { return b.number(a) + b; }
inline Formula operator-(double a, Formula b) { return b.number(a) - b; }
inline Formula operator*(double a, Formula b) { return b.number(a) * b; }
inline Formula operator/(double a, Formula b) { return b.number(a) / b; }
inline Formula reciprocal_from_one(Formula a) { return a.with(Op::Div, {a.number(1).id, a.id}, 1); }  // see Op::Div
inline Formula operator-(Formula a) { return a.with(Op::Neg, {a.id}); }
inline Formula operator<(Formula a, Formula b) { return a.with(Op::Less, {a.id, b.id}); }
inline Formula operator<=(Formula a, Formula b) { return a.with(Op::LessEqual, {a.id, b.id}); }
inline Formula equal(Formula a, Formula b) { return a.with(Op::Equal, {a.id, b.id}); }
inline Formula abs(Formula a) { return a.with(Op::Abs, {a.id}); }
inline Formula sqrt(Formula a) { return a.with(Op::Sqrt, {a.id}); }
inline Formula floor(Formula a) { return a.with(Op::Floor, {a.id}); }
inline Formula round(Formula a) { return a.with(Op::Round, {a.id}); }
inline Formula fma(Formula a, Formula b, Formula c) { return a.with(Op::Fma, {a.id, b.id, c.id}); }
inline Formula fma(Formula a, Formula b, double c) { return fma(a, b, a.number(c)); }
inline Formula fma(Formula a, double b, double c) { return fma(a, a.number(b), a.number(c)); }
inline Formula fma(Formula a, double b, Formula c) { return fma(a, a.number(b), c); }
inline Formula min(Formula a, Formula b) { return a.with(Op::Min, {a.id, b.id}); }
inline Formula max(Formula a, Formula b) { return a.with(Op::Max, {a.id, b.id}); }
inline Formula min(Formula a, double b) { return min(a, a.number(b)); }
inline Formula max(Formula a, double b) { return max(a, a.number(b)); }
inline Formula select(Formula condition, Formula a, Formula b) {
  return a.with(Op::Select, {condition.id, a.id, b.id});
}
inline Formula bits_add(Formula a, Formula b) { return a.with(Op::BitsAdd, {a.id, b.id}); }
inline Formula bits_and(Formula a, Formula b) { return a.with(Op::BitsAnd, {a.id, b.id}); }
inline Formula bits_or(Formula a, Formula b) { return a.with(Op::BitsOr, {a.id, b.id}); }
inline Formula bits_shift_left(Formula a, int by) { return a.with(Op::BitsShiftLeft, {a.id}, by); }
inline Formula bits_shift_right(Formula a, int by) { return a.with(Op::BitsShiftRight, {a.id}, by); }
inline Formula sum(Formula a) { return a.with(Op::Sum, {a.id}); }
inline Formula column_sum(Formula a) { return a.with(Op::ColumnSum, {a.id}); }

}  // namespace trireme
