#pragma once
#include "devices/cpu/moves.hpp"

namespace trireme::cpu {

template <typename T>
const Moves<T>& avx2_moves(bool small);  // small: for what is left over
template <typename T>
const Moves<T>& avx512_moves();  // not for bytes, which have no permutations across a register before VBMI

}  // namespace trireme::cpu
