// For engines without SIMD: a function of SIMD instructions, of which only lane 0 counts, in those of WebAssembly 1.0.
#pragma once
#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {

// `value`: F32 or F64, what v128 is where functions call each other. Refuses what brings other lanes into lane 0.
// Integers of 8 and 16 bits in lanes are taken for numbers within them.
Result<Body> one_lane(const Body& body, Type value);

Callee with_vectors(Callee callee);  // the callee as a body of SIMD instructions calls it

}  // namespace trireme::wasm
