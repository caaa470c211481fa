// f32 lanes as pairs of f64 lanes, where products of f32 are exact and sums nearly so.
#pragma once
#include "targets/wasm/values.hpp"

namespace trireme::wasm {

// Lanes 0 and 1, and lanes 2 and 3.
struct Halves {
  Value<F64x2> low, high;
};
inline Value<F64x2> promoted(Value<F32x4> v) { return v.writer->apply<F64x2>("f64x2.promote_low_f32x4", v); }
inline Halves halves(Value<F32x4> v) {
  const auto upper = shuffle(v, v, {8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15});
  const auto low = promoted(v);
  return {low, promoted(upper)};
}
inline Value<F32x4> rounded(Value<F64x2> v) { return v.writer->apply<F32x4>("f32x4.demote_f64x2_zero", v); }
struct NarrowHalves {  // lanes 0 and 1 of each; braces keep the order in which they are written
  Value<F32x4> low, high;
};
inline Value<F32x4> joined(const NarrowHalves& half) {
  return shuffle(half.low, half.high, {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23});
}

// Lanes of ones where rounding these sums, that f64 has rounded, once more to f32 may be wrong: only where the first
// rounding hit the middle between two f32. That is where the last 29 bits are 1000..., or anywhere among subnormal
// results (unless `subnormals` says that there are none).
inline Value<I32x4> may_be_wrong(Value<F64x2> low, Value<F64x2> high, bool subnormals) {
  const auto low_words = as<I32x4>(shuffle(low, high, {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27}));
  const auto middle = equal(low_words << 3, 0x80000000u);
  if (!subnormals) return middle;
  const auto high_words = as<I32x4>(shuffle(low, high, {4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31}));
  const auto size = high_words & 0x7fffffffu;
  const auto nonzero = more(size, 0);
  const auto small = less(size, 0x38100001u) & nonzero;  // the high word of 2^-126 is 0x38100000
  return small | middle;
}

}  // namespace trireme::wasm
