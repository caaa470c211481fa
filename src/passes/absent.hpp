// Operands that a call leaves out, seen by a backward.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "ir/program.hpp"

namespace trireme {

// The default that an operand has, where that is a number: -(1) is one, as -1 is.
std::optional<double> default_number(const Program& program, const Operand& operand);

// Its default reads operands: what an absent one stands for has a gradient of its own.
bool has_expression(const Program& program, const Operand& operand);

// The program in which the defaults of absent operands have taken their place. An operand whose type the program asks
// for, largest(s), stays for its type alone, and nothing reads its values.
Program without_absent(const Program& program, const std::set<std::string>& absent);

}  // namespace trireme
