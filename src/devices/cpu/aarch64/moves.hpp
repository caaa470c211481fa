#pragma once
#include "devices/cpu/moves.hpp"

namespace trireme::cpu {

const MoveTable& neon_moves();

}  // namespace trireme::cpu
