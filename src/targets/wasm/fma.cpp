#include "targets/wasm/fma.hpp"

#include "targets/wasm/values.hpp"

namespace trireme::wasm {
namespace {

// Lanes 2 and 3 in the places of 0 and 1.
Value<F32x4> upper(Value<F32x4> v) {
  return shuffle(v, v, {8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15});
}

// a * b + c of the lower lanes, rounded to f64's neighbour that is odd. The product of two f32 is exact in f64, and
// what the sum loses is known exactly (TwoSum), so this is the sum cut towards zero, its last bit set where something
// was lost. Rounding that to f32, at most 24 bits, gives what rounding the true value would have given: subnormal
// results and overflow too.
Value<F64x2> to_odd_fma(Value<F32x4> a, Value<F32x4> b, Value<F32x4> c) {
  Writer& writer = *a.writer;
  constexpr PlainOp promote = "f64x2.promote_low_f32x4";
  const auto left = writer.apply<F64x2>(promote, a);
  const auto right = writer.apply<F64x2>(promote, b);
  const auto added = writer.apply<F64x2>(promote, c);
  const auto product = left * right;
  const auto sum = product + added;
  const auto part = sum - product;
  const auto product_lost = product - (sum - part);
  const auto lost = (added - part) + product_lost;
  const auto inexact = more(abs(lost), 0.0);  // false for infinities and NaN, where `lost` is NaN
  const auto opposite = as<I64x2>(lost ^ sum) & inexact;
  const auto cut = as<I64x2>(sum) - (opposite >> 63);
  const auto odd = inexact >> 63;
  return as<F64x2>(cut | odd);
}

}  // namespace

Result<Body> write_fma_f32x4() {
  return write_twice("fma_f32x4", Type::V128, [](Function& f, Constants& constants) {
    const auto a_local = f.parameter<V128>("a"), b_local = f.parameter<V128>("b"), c_local = f.parameter<V128>("c");
    Writer writer(f, constants);
    const auto a = writer.value<F32x4>(a_local), b = writer.value<F32x4>(b_local), c = writer.value<F32x4>(c_local);
    constexpr PlainOp demote = "f32x4.demote_f64x2_zero";
    const auto low = writer.apply<F32x4>(demote, to_odd_fma(a, b, c));
    const auto a_upper = upper(a), b_upper = upper(b), c_upper = upper(c);
    const auto high = writer.apply<F32x4>(demote, to_odd_fma(a_upper, b_upper, c_upper));
    writer.push(shuffle(low, high, {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}));
  });
}

Result<Body> write_fma_f64() { return Error{trireme::Code::Unsupported, "wasm: fma of f64 without relaxed_madd"}; }

}  // namespace trireme::wasm
