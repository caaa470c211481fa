// The records of the functions, by the file that holds them; functions.cpp lists them in one table.
#pragma once
#include "math/functions.hpp"

namespace trireme::records {

// exp.cpp
Function exp();
Function expm1();
// log.cpp
Function log();
Function log1p();
Function softplus();
// gates.cpp
Function sigmoid();
Function silu();
Function tanh();
Function gelu_tanh();
// erf.cpp
Function erf();
Function gelu();
Function gelu_slope();
// exponents.cpp
Function exponent_ceil();
Function exponent_floor();
// simple.cpp
Function rsqrt();
Function square();
Function sign();
Function relu();
Function clamp();

}  // namespace trireme::records
