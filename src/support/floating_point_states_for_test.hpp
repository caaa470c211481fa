// Floating-point states that a caller may have: every direction of rounding, with and without flushing, traps and what
// has happened before.
#pragma once
#include <vector>

#include "support/contract_arithmetic.hpp"

namespace trireme {

inline std::vector<FloatingPointState> floating_point_states() {
#if defined(__SSE__)
  constexpr FloatingPointState flush = 1 << 15, subnormals_are_zero = 1 << 6, masks = 0x3F << 7;
  const FloatingPointState rests[] = {masks, masks | flush, masks | subnormals_are_zero,
                                      masks | flush | subnormals_are_zero | sticky_bits, 0 /* every exception traps */};
  constexpr int rounding_bit = 13;
#elif defined(__aarch64__)
  constexpr FloatingPointState flush = 1 << 24, default_nan = 1 << 25, alternative_half = 1 << 26;
  const FloatingPointState rests[] = {0, flush, default_nan, flush | default_nan | alternative_half};
  constexpr int rounding_bit = 22;
#else
  const FloatingPointState rests[] = {0};
  constexpr int rounding_bit = 0;
#endif
  std::vector<FloatingPointState> states;
  for (FloatingPointState rounding = 0; rounding < 4; ++rounding)
    for (FloatingPointState rest : rests) states.push_back(rounding << rounding_bit | rest);
  return states;
}

}  // namespace trireme
