// Operands that a call leaves out, seen by a backward.
#pragma once
#include <set>
#include <string>

#include "ir/program.hpp"

namespace trireme {

// Its default reads operands: what an absent one stands for has a gradient of its own.
bool has_expression(const Program& program, const Operand& operand);

// The program in which the defaults of absent operands have taken their place, where those are expressions. Numbers
// have no gradient, and who asks for that of their operand gets it.
Program without_absent(const Program& program, const std::set<std::string>& absent);

}  // namespace trireme
