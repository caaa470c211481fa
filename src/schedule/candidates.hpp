// The configs worth trying for a problem: what the tuner searches, and where choose_config's thresholds come from.
#pragma once
#include <vector>

#include "schedule/config.hpp"

namespace trireme {

// The chosen config first; all of them lower, or are refused by `lower` with a reason. Bits are the same for all.
std::vector<Config> candidate_configs(const Program& program, const Machine& machine, const Facts& facts);

// One step from a good config: what a search looks at next. Some are refused by `lower`.
std::vector<Config> neighbours(const Config& config);

}  // namespace trireme
