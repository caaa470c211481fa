// Lowers stages and a config to kernels.
#pragma once
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/stages.hpp"

namespace trireme {

Result<Kernels> lower(const Program& program, const Config& config);

}  // namespace trireme
