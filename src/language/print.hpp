// Program to text: print -> parse -> print is the identity, for programs made by passes too.
#pragma once
#include <string>

#include "ir/program.hpp"

namespace trireme {

std::string print(const Program& program);

}  // namespace trireme
