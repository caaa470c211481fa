// a * b + c, rounded once, on engines whose relaxed_madd is missing or not fused.
#pragma once
#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {

Result<Body> write_fma_f32x4();  // (v128, v128, v128) -> v128
Result<Body> write_fma_f64();    // (f64, f64, f64) -> f64

}  // namespace trireme::wasm
