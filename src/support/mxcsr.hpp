// The floating-point state of the contract on x86: nearest even, subnormals kept, no traps. Whoever computes contract
// values on the host holds one of these; the caller's state comes back at the end of the scope.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace trireme {

class ContractArithmetic {
 public:
  static constexpr unsigned mxcsr = 0x1F80;
#if defined(__SSE__)
  ContractArithmetic() { _mm_setcsr(mxcsr); }
  ~ContractArithmetic() { _mm_setcsr(saved_); }

 private:
  unsigned saved_ = _mm_getcsr();
#else
  ContractArithmetic() {}  // not defaulted: a scope object that is never named must not warn
#endif
 public:
  ContractArithmetic(const ContractArithmetic&) = delete;
  ContractArithmetic& operator=(const ContractArithmetic&) = delete;
};

}  // namespace trireme
