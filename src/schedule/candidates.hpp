// The configs worth trying for a problem: what the cost model ranks and the tuner times.
#pragma once
#include <vector>

#include "schedule/config.hpp"

namespace trireme {

// All of them are valid, and the bits are the same for all.
std::vector<Config> candidate_configs(const Program& program, const Machine& machine, const Facts& facts);

// The cheapest first, where there is a cost model.
void sort_by_cost(const Program& program, const Machine& machine, const Facts& facts, std::vector<Config>& configs);

// One step of an option (options.hpp) from a good config: what a search looks at next. Some are not valid.
std::vector<Config> neighbours(const Config& config);

}  // namespace trireme
