// Squares of entries transposed in registers, as many side by side as make a register. Included by one file for each
// instruction set, which defines TRIREME_TARGET, the attribute of functions compiled for it, and `register_bytes`.
#include <immintrin.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "devices/cpu/moves.hpp"

namespace trireme::cpu {
namespace {

template <typename T>
constexpr int in_register = register_bytes / static_cast<int>(sizeof(T));
template <typename T>
constexpr int square = in_register<T> < 16 ? in_register<T> : 16;

template <typename T>
struct Register {
  using Vector [[gnu::vector_size(register_bytes)]] = T;
};

// Of two rows that are `d` apart: swaps the quarters of each 2d x 2d square that lie off its diagonal.
template <typename T, int d, int... k>
[[TRIREME_TARGET, gnu::always_inline]] inline void swap_quarters(typename Register<T>::Vector& a,
                                                                 typename Register<T>::Vector& b,
                                                                 std::integer_sequence<int, k...>) {
  auto first = __builtin_shufflevector(a, b, (k & d ? in_register<T> + k - d : k)...);
  b = __builtin_shufflevector(a, b, (k & d ? in_register<T> + k : k + d)...);
  a = first;
}

template <typename T, int d>
[[TRIREME_TARGET, gnu::always_inline]] inline void transpose(typename Register<T>::Vector* rows) {
  if constexpr (d > 0) {
#pragma GCC unroll 16
    for (int k = 0; k < square<T>; ++k)
      if (!(k & d)) swap_quarters<T, d>(rows[k], rows[k + d], std::make_integer_sequence<int, in_register<T>>{});
    transpose<T, d / 2>(rows);
  }
}

template <typename T>
[[TRIREME_TARGET, gnu::always_inline]] inline void stream(T* to, const typename Register<T>::Vector& from) {
  if constexpr (register_bytes == 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<const __m512i&>(from));
  else _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<const __m256i&>(from));
}

template <typename T, Way way>
[[TRIREME_TARGET, gnu::always_inline]] inline void squares_of_register(T* apart, std::int64_t stride, T* dense,
                                                                       std::int64_t step) {
  constexpr int n = square<T>, parts = in_register<T> / n;
  typename Register<T>::Vector rows[n];
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) {
    if constexpr (way == Way::Pack) std::memcpy(&rows[k], apart + k * stride, register_bytes);
    else
      for (int p = 0; p < parts; ++p)
        std::memcpy(reinterpret_cast<T*>(&rows[k]) + p * n, dense + (k + p * n) * step, n * sizeof(T));
  }
  transpose<T, n / 2>(rows);
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) {
    if constexpr (way == Way::Stream) stream<T>(apart + k * stride, rows[k]);
    else if constexpr (way == Way::Unpack) std::memcpy(apart + k * stride, &rows[k], register_bytes);
    else
      for (int p = 0; p < parts; ++p)
        std::memcpy(dense + (k + p * n) * step, reinterpret_cast<T*>(&rows[k]) + p * n, n * sizeof(T));
  }
}

// Columns that lie far apart: no processor guesses them. Where all of them stay in a cache it would be work for
// nothing.
template <typename T>
void fetch_columns(const Block<T>& block, std::int64_t from, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T), in_cache = (1 << 20) / sizeof(T);
  if (block.columns * std::abs(block.stride) <= in_cache) return;
  for (std::int64_t c = from; c < from + count && c < block.columns; ++c)
    for (std::int64_t r = 0; r < block.rows; r += line) __builtin_prefetch(block.apart + c * block.stride + r);
}

template <typename T, Way way>
[[TRIREME_TARGET]] void squares(const Block<T>& block) {
  for (std::int64_t c = 0; c < block.columns; c += square<T>) {
    if (way != Way::Stream) fetch_columns(block, c + 16, square<T>);
    for (std::int64_t r = 0; r < block.rows; r += in_register<T>)
      squares_of_register<T, way>(block.apart + c * block.stride + r, block.stride, block.dense + r * block.step + c,
                                  block.step);
  }
}

}  // namespace
}  // namespace trireme::cpu
