// Arithmetic on locals, written as it reads: an operator on Values emits its instruction at once and leaves the result
// in a temporary local. The same bits under another shape (f32x4, i32x4) are another C++ type.
//
// Where both sides of an operator emit code, name one of them first: C++ does not say which side comes first, and the
// bytes of a module must not depend on the compiler that built this.
#pragma once
#include "targets/wasm/writer.hpp"

namespace trireme::wasm {

// The right side of an operator: a value, or a number that stands for a constant (in all lanes).
template <typename S>
struct Right {
  Right(Value<S> value) : value(value) {}
  Right(typename Shape<S>::Lane number) : number(number) {}
  std::optional<Value<S>> value;
  typename Shape<S>::Lane number = {};
};
template <typename S>
using RightOf = std::type_identity_t<Right<S>>;

template <typename Result, typename S, typename Other>
Value<Result> binary(PlainOp op, Value<S> left, const Right<Other>& right) {
  Writer& writer = *left.writer;
  writer.push(left);
  right.value ? writer.push(*right.value) : writer.push_constant<Other>(right.number);
  writer.raw().op(op);
  return writer.pop<Result>();
}
template <typename S>
using Count = std::conditional_t<is_vector<S>, I32, S>;  // of a shift
template <typename S>
using Condition = typename Shape<S>::Condition;  // lanes of ones or zeros; 1 or 0 for scalars

// clang-format off
template <typename S> Value<S> operator+(Value<S> a, RightOf<S> b) { return binary<S>(instruction(Shape<S>::name, "add"), a, b); }
template <typename S> Value<S> operator-(Value<S> a, RightOf<S> b) { return binary<S>(instruction(Shape<S>::name, "sub"), a, b); }
template <typename S> Value<S> operator*(Value<S> a, RightOf<S> b) { return binary<S>(instruction(Shape<S>::name, "mul"), a, b); }
template <typename S> Value<S> operator&(Value<S> a, RightOf<S> b) { return binary<S>(instruction(Shape<S>::words, "and"), a, b); }
template <typename S> Value<S> operator|(Value<S> a, RightOf<S> b) { return binary<S>(instruction(Shape<S>::words, "or"), a, b); }
template <typename S> Value<S> operator^(Value<S> a, RightOf<S> b) { return binary<S>(instruction(Shape<S>::words, "xor"), a, b); }
template <typename S> Value<S> operator<<(Value<S> a, RightOf<Count<S>> n) { return binary<S>(instruction(Shape<S>::name, "shl"), a, n); }
template <typename S> Value<S> operator>>(Value<S> a, RightOf<Count<S>> n) { return binary<S>(instruction(Shape<S>::name, "shr_u"), a, n); }
template <typename S> Value<S> shift_signed(Value<S> a, RightOf<Count<S>> n) { return binary<S>(instruction(Shape<S>::name, "shr_s"), a, n); }
template <typename S> auto equal(Value<S> a, RightOf<S> b) { return binary<Condition<S>>(instruction(Shape<S>::name, "eq"), a, b); }
template <typename S> auto differ(Value<S> a, RightOf<S> b) { return binary<Condition<S>>(instruction(Shape<S>::name, "ne"), a, b); }
// clang-format on

// Integers: signed. Those without a sign have names of their own.
template <typename S>
auto less(Value<S> a, RightOf<S> b) {
  constexpr bool is_float = std::is_floating_point_v<typename Shape<S>::Lane>;
  return binary<Condition<S>>(instruction(Shape<S>::name, is_float ? "lt" : "lt_s"), a, b);
}
template <typename S>
auto more(Value<S> a, RightOf<S> b) {
  constexpr bool is_float = std::is_floating_point_v<typename Shape<S>::Lane>;
  return binary<Condition<S>>(instruction(Shape<S>::name, is_float ? "gt" : "gt_s"), a, b);
}
template <typename S>
auto more_unsigned(Value<S> a, RightOf<S> b) {
  return binary<Condition<S>>(instruction(Shape<S>::name, "gt_u"), a, b);
}

template <typename S>
auto less_unsigned(Value<S> a, RightOf<S> b) {
  return binary<Condition<S>>(instruction(Shape<S>::name, "lt_u"), a, b);
}

// The same bits under another shape.
template <typename To, typename S>
Value<To> as(Value<S> value) {
  static_assert(is_vector<S> && is_vector<To>);
  return {value.writer, value.local};
}
template <typename S>
Value<S> abs(Value<S> value) {
  return value.writer->template apply<S>(instruction(Shape<S>::name, "abs"), value);
}
// condition ? yes : no
template <typename S>
Value<S> choose(Value<Condition<S>> condition, Value<S> yes, Value<S> no) {
  constexpr PlainOp op = is_vector<S> ? PlainOp("v128.bitselect") : PlainOp("select");
  return condition.writer->template apply<S>(op, yes, no, condition);
}
// 16 bytes out of a (0..15) and b (16..31).
template <typename S>
Value<S> shuffle(Value<S> a, Value<S> b, const std::array<std::uint8_t, 16>& bytes) {
  a.writer->push(a), b.writer->push(b);
  a.writer->raw().shuffle(bytes);
  return a.writer->template pop<S>();
}

}  // namespace trireme::wasm
