// a * b + c, rounded once, for engines whose relaxed_madd is missing or not fused.
#pragma once
#include "targets/wasm/values.hpp"
#include "trireme/type.hpp"

namespace trireme::wasm {

// Adds a function (v128, v128, v128) -> v128 of f32 or f64 lanes, and what it calls.
Result<Callee> add_fma(Module& module, trireme::Type compute, bool scalar = false);
Result<Body> write_fma_f64();  // (f64, f64, f64) -> f64

}  // namespace trireme::wasm
