// a * b + c, rounded once, for engines whose relaxed_madd is missing or not fused.
#pragma once
#include "targets/wasm/values.hpp"
#include "trireme/type.hpp"

namespace trireme::wasm {

// Adds a function (v128, v128, v128) -> v128, right for all operands, and what it calls.
Result<Callee> add_fma(Module& module, trireme::Type compute);
Result<Body> write_fma_f64();  // (f64, f64, f64) -> f64

struct FmaOperand {
  Value<F32x4> value;
  std::optional<float> constant;  // the same in all lanes, known now
};
// In place, for f32: a third of the instructions and latency of the function, `exact`, which it calls where it must.
Value<F32x4> fma_f32x4(const FmaOperand& a, const FmaOperand& b, const FmaOperand& c, const Callee& exact);

}  // namespace trireme::wasm
