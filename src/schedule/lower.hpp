// Lowers a program to kernels, by a given config or by the one that a machine gets.
#pragma once
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// With names: the kernels say which registers hold the values that the program names, for readers of listings; what is
// emitted is the same.
Result<Kernels> lower(const Program& program, Config config, bool with_names = false);

// Kernels, and the schedule they were lowered by.
struct Lowered {
  Config config;
  Kernels kernels;
};
Result<Lowered> lower_for(const Program& program, const Machine& machine, const Facts& facts, bool with_names = false);
std::string print(const Lowered& lowered);

}  // namespace trireme
