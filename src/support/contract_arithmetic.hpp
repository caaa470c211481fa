// The floating-point state of the contract: nearest even, subnormals kept, no traps. Whoever computes contract values
// on the host holds a ContractArithmetic; the caller's state comes back at the end of the scope.
#pragma once
#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace trireme {

using FloatingPointState = std::uint64_t;  // of the processor

#if defined(__SSE__)
// MXCSR
inline constexpr FloatingPointState contract_state = 0x1F80;
inline constexpr FloatingPointState careless_state =
    contract_state | 0xE040;                             // flushes subnormals, rounds towards zero
inline constexpr FloatingPointState sticky_bits = 0x3F;  // what has happened
inline FloatingPointState floating_point_state() { return _mm_getcsr(); }
inline void set_floating_point_state(FloatingPointState state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
// FPCR
inline constexpr FloatingPointState contract_state = 0;
inline constexpr FloatingPointState careless_state = 0x1C00000;  // flushes subnormals, rounds towards zero
inline constexpr FloatingPointState sticky_bits = 0;
inline FloatingPointState floating_point_state() {
  FloatingPointState state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
inline void set_floating_point_state(FloatingPointState state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#else
// There is only one.
inline constexpr FloatingPointState contract_state = 0, careless_state = 0, sticky_bits = 0;
inline FloatingPointState floating_point_state() { return 0; }
inline void set_floating_point_state(FloatingPointState) {}
#endif

class ContractArithmetic {
 public:
  ContractArithmetic() { set_floating_point_state(contract_state); }
  ~ContractArithmetic() { set_floating_point_state(saved_); }
  ContractArithmetic(const ContractArithmetic&) = delete;
  ContractArithmetic& operator=(const ContractArithmetic&) = delete;

 private:
  FloatingPointState saved_ = floating_point_state();
};

}  // namespace trireme
