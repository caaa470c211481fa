// The heuristics of choose_config() (config.hpp), a file for each kind of machine.
#pragma once
#include "schedule/config.hpp"

namespace trireme {

Config choose_for_simd(const Program& program, const Machine& machine, const Facts& facts);
Config choose_for_threads(const Program& program, const Machine& machine, const Facts& facts);

}  // namespace trireme
