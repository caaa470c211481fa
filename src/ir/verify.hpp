// Checks what every pass may rely on; runs between all passes.
#pragma once
#include "ir/program.hpp"

namespace trireme {

// Arguments stand before users and have the right number and kind (value or condition); results are spread no narrower
// than their values; colsum stands only as a result's whole value; names are unique; divisors are constant expressions;
// a bound program has types everywhere and no symbols left.
Status verify(const Program& program);

}  // namespace trireme
