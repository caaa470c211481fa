// Between storage types and lanes. Bits of storage stand one element an i32 lane, zeros above them.
#pragma once
#include "targets/wasm/values.hpp"
#include "trireme/type.hpp"

namespace trireme::wasm {

using Storage = trireme::Type;

// Exact, but for i32 to f32, which rounds once. f64 comes as it is, and in f64 kernels only.
Value<F32x4> widen(Value<I32x4> bits, Storage from);
Value<F64x2> widen_to_f64(Value<I32x4> bits, Storage from);  // two lanes, the lower ones

// Rounds once, to nearest even; f8 and integers saturate, NaN becomes NaN or 0. exact: the type holds the value.
Value<I32x4> narrow(Value<F32x4> value, Storage to, bool exact = false);
Value<I32x4> narrow_from_f64(Value<F64x2> value, Storage to, bool exact = false);  // two lanes, the lower ones

}  // namespace trireme::wasm
