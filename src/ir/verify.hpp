// Checks what every pass may rely on; runs between all passes.
#pragma once
#include "ir/program.hpp"

namespace trireme {

// Arguments stand before users and have the right number and kind (value or condition); results are spread no narrower
// than their values; colsum and colmax stand only as a result's whole value; names are unique; divisors are constant
// expressions; a bound program has types everywhere and no symbols left.
Status verify(const Program& program);

// Known when the plan is made: + - * / and unary - over Number, Constant and ColumnCount; what `rotate` turns by, and
// where it is a positive integer, as far as it is known, a divisor of an index. They are short, so that printing them
// as trees and walking them costs little.
inline constexpr int max_constant_expression_nodes = 64;
bool is_constant_expression(const Program& program, NodeId id);
bool is_divisor(const Program& program, NodeId id);
bool counts_columns(const Program& program, NodeId id);  // a constant expression, with n

}  // namespace trireme
