#include "support/fma.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "support/environment.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trireme {
namespace {

#if defined(__x86_64__)
[[gnu::target("avx,fma")]] void by_vectors(const float* a, const float* b, const float* c, float* out,
                                           std::size_t count) {
  for (std::size_t k = 0; k < count; k += 8)
    _mm256_storeu_ps(out + k, _mm256_fmadd_ps(_mm256_loadu_ps(a + k), _mm256_loadu_ps(b + k), _mm256_loadu_ps(c + k)));
}
[[gnu::target("avx,fma")]] void by_vectors(const double* a, const double* b, const double* c, double* out,
                                           std::size_t count) {
  for (std::size_t k = 0; k < count; k += 4)
    _mm256_storeu_pd(out + k, _mm256_fmadd_pd(_mm256_loadu_pd(a + k), _mm256_loadu_pd(b + k), _mm256_loadu_pd(c + k)));
}

// Hidden with AVX2, so that what serves older processors can be tested on any.
bool has_vectors() {
  static const bool found = [] {
    Result<std::vector<std::string>> hidden = environment::hidden();
    return __builtin_cpu_supports("fma") && !(hidden && std::ranges::count(*hidden, "avx2"));
  }();
  return found;
}
#else
template <typename T>
void by_vectors(const T*, const T*, const T*, T*, std::size_t) {}
constexpr bool has_vectors() { return false; }  // the compiler knows the instruction, or there is none
#endif

template <typename T>
void all(const T* a, const T* b, const T* c, T* out, std::size_t count) {
  if (has_vectors()) return by_vectors(a, b, c, out, count);
  for (std::size_t k = 0; k < count; ++k) out[k] = std::fma(a[k], b[k], c[k]);
}

}  // namespace

void fma_all(const float* a, const float* b, const float* c, float* out, std::size_t count) {
  all(a, b, c, out, count);
}
void fma_all(const double* a, const double* b, const double* c, double* out, std::size_t count) {
  all(a, b, c, out, count);
}

}  // namespace trireme
