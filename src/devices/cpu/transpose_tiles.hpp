// Square tiles of entries, transposed in registers of R bytes, as many side by side as make a register. Included by one
// file for each instruction set, which defines TRIREME_TARGET, the attribute of functions compiled for it, and before
// that stream<R>(to, vector), a store past the caches.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "devices/cpu/moves.hpp"

namespace trireme::cpu {
namespace {

template <typename T, int R>
constexpr int in_register = R / static_cast<int>(sizeof(T));
template <typename T, int R>
constexpr int tile_size = in_register<T, R> < 16 ? in_register<T, R> : 16;

template <typename T, int R>
struct Register {
  using Vector [[gnu::vector_size(R)]] = T;
};

// Of two rows that are `d` apart: swaps the quarters of each 2d x 2d tile that lie off its diagonal.
template <typename T, int R, int d, int... k>
[[TRIREME_TARGET, gnu::always_inline]] inline void swap_quarters(typename Register<T, R>::Vector& a,
                                                                 typename Register<T, R>::Vector& b,
                                                                 std::integer_sequence<int, k...>) {
  auto first = __builtin_shufflevector(a, b, (k & d ? in_register<T, R> + k - d : k)...);
  b = __builtin_shufflevector(a, b, (k & d ? in_register<T, R> + k : k + d)...);
  a = first;
}

template <typename T, int R, int d>
[[TRIREME_TARGET, gnu::always_inline]] inline void transpose(typename Register<T, R>::Vector* rows) {
  if constexpr (d > 0) {
#pragma GCC unroll 16
    for (int k = 0; k < tile_size<T, R>; ++k)
      if (!(k & d)) swap_quarters<T, R, d>(rows[k], rows[k + d], std::make_integer_sequence<int, in_register<T, R>>{});
    transpose<T, R, d / 2>(rows);
  }
}

// Two halves that make a register. Through an array, both would be stored for the load of the whole to wait for.
template <int R, int... k>
[[TRIREME_TARGET, gnu::always_inline]] inline auto load_halves(const void* low, const void* high,
                                                               std::integer_sequence<int, k...>) {
  typename Register<std::uint64_t, R / 2>::Vector halves[2];
  std::memcpy(&halves[0], low, R / 2);
  std::memcpy(&halves[1], high, R / 2);
  return __builtin_shufflevector(halves[0], halves[1], k..., static_cast<int>(sizeof...(k)) + k...);
}
template <int R, int... k>
[[TRIREME_TARGET, gnu::always_inline]] inline void store_halves(void* low, void* high,
                                                                const typename Register<std::uint64_t, R>::Vector& both,
                                                                std::integer_sequence<int, k...>) {
  const auto first = __builtin_shufflevector(both, both, k...);
  const auto second = __builtin_shufflevector(both, both, static_cast<int>(sizeof...(k)) + k...);
  std::memcpy(low, &first, R / 2);
  std::memcpy(high, &second, R / 2);
}

// A row of each tile of a register; the tiles' rows lie one below the other.
template <typename T, int R>
[[TRIREME_TARGET, gnu::always_inline]] inline typename Register<T, R>::Vector load_row(const T* dense,
                                                                                       std::int64_t step) {
  typename Register<T, R>::Vector row;
  if constexpr (in_register<T, R> == tile_size<T, R>) std::memcpy(&row, dense, R);
  else
    row = reinterpret_cast<decltype(row)>(
        load_halves<R>(dense, dense + tile_size<T, R> * step, std::make_integer_sequence<int, R / 16>{}));
  return row;
}
template <typename T, int R>
[[TRIREME_TARGET, gnu::always_inline]] inline void store_row(T* dense, std::int64_t step,
                                                             const typename Register<T, R>::Vector& row) {
  if constexpr (in_register<T, R> == tile_size<T, R>) std::memcpy(dense, &row, R);
  else
    store_halves<R>(dense, dense + tile_size<T, R> * step,
                    reinterpret_cast<const typename Register<std::uint64_t, R>::Vector&>(row),
                    std::make_integer_sequence<int, R / 16>{});
}

// Unpacking, `parts` registers make a line, and are written at once: columns may lie so distant from each other that
// all their lines share a place in the first cache, and parts of lines do not stream.
template <typename T, int R, Direction direction, int parts>
[[TRIREME_TARGET, gnu::always_inline]] inline void transpose_registers(T* strided, std::int64_t stride, T* dense,
                                                                       std::int64_t step) {
  constexpr int n = tile_size<T, R>, wide = in_register<T, R>;
  static_assert(direction != Direction::Pack || parts == 1);
  typename Register<T, R>::Vector rows[parts][n];
#pragma GCC unroll 4
  for (int part = 0; part < parts; ++part) {
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) {
      if constexpr (direction == Direction::Pack) std::memcpy(&rows[part][k], strided + k * stride, R);
      else rows[part][k] = load_row<T, R>(dense + (part * wide + k) * step, step);
    }
    transpose<T, R, n / 2>(rows[part]);
  }
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) {
    if constexpr (direction == Direction::Pack) store_row<T, R>(dense + k * step, step, rows[0][k]);
    else
#pragma GCC unroll 4
      for (int part = 0; part < parts; ++part) {
        if constexpr (direction == Direction::Stream) stream<R>(strided + k * stride + part * wide, rows[part][k]);
        else std::memcpy(strided + k * stride + part * wide, &rows[part][k], R);
      }
  }
}

// Into the second cache: columns a power of two apart share a few sets of the first. No processor predicts them.
template <typename T>
void prefetch_columns(const Block<T>& block, std::int64_t from, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t c = from; c < from + count && c < block.columns; ++c)
    for (std::int64_t r = 0; r < block.rows; r += line) __builtin_prefetch(block.strided + c * block.stride + r, 0, 2);
}

template <typename T, int R, Direction direction>
[[TRIREME_TARGET]] void transpose_tiles_in(const Block<T> block) {  // its own: stores of vectors may alias anything
  const std::int64_t ahead = std::max<std::int64_t>(16, 64 * (64 / sizeof(T)) / block.rows);  // 64 lines
  constexpr int wide = in_register<T, R>, parts = direction == Direction::Pack ? 1 : 64 / R, line = parts * wide;
  for (std::int64_t c = 0; c < block.columns; c += tile_size<T, R>) {
    if (direction != Direction::Stream && block.beyond_cache) prefetch_columns(block, c + ahead, tile_size<T, R>);
    T *strided = block.strided + c * block.stride, *dense = block.dense + c;
    std::int64_t r = 0;
    for (; r + line <= block.rows; r += line)
      transpose_registers<T, R, direction, parts>(strided + r, block.stride, dense + r * block.step, block.step);
    if constexpr (parts > 1)
      for (; r < block.rows; r += wide)
        transpose_registers<T, R, direction, 1>(strided + r, block.stride, dense + r * block.step, block.step);
  }
}

template <typename T, int R, Direction direction>
void transpose_tiles(const Block<T>& block) {
  transpose_tiles_in<T, R, direction>(block);
}

}  // namespace
}  // namespace trireme::cpu
