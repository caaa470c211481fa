// For few bytes: a function without the locals that a stack machine can do without.
#pragma once
#include "targets/wasm/encoder.hpp"

namespace trireme::wasm {

// Does the same, bit for bit.
Body shrink(Body body);

}  // namespace trireme::wasm
