// Masked loads and stores of whole v128 as functions, where few bytes go before speed.
#pragma once
#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {

// (i32 address, v128 mask) -> v128 with zeros in absent lanes, and (i32 address, v128 value, v128 mask). Lanes of
// `lane_bytes`, 4 or 8; no byte of an absent one is touched.
Result<Callee> add_masked_load(Module& module, int lane_bytes);
Result<Callee> add_masked_store(Module& module, int lane_bytes);

}  // namespace trireme::wasm
