// a * b + c, rounded once, of many numbers.
#pragma once
#include <cstddef>

namespace trireme {

// std::fma is a call wherever the compiler may not assume the instruction. `count` is a multiple of 8.
void fma_all(const float* a, const float* b, const float* c, float* out, std::size_t count);
void fma_all(const double* a, const double* b, const double* c, double* out, std::size_t count);

}  // namespace trireme
