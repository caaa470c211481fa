// What a program's author might write better; `trireme show` says it.
#pragma once
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace trireme {

std::vector<std::string> advise(const Program& program);

}  // namespace trireme
