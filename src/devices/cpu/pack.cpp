// Copies between strided and dense rows.
#include <emmintrin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "devices/cpu/packing.hpp"
#include "layout/flatten.hpp"

namespace trireme::cpu {
namespace {

// Both ways: `apart` has any strides, `dense` has its columns side by side.
enum class Way : std::uint8_t {
  Pack,
  Unpack,
  UnpackStreaming,  // past the caches, where whole lines are written
};

template <typename T, Way way>
[[gnu::always_inline]] inline void move(T* apart, T* dense) {
  if constexpr (way == Way::Pack) std::memcpy(dense, apart, sizeof(T));
  else std::memcpy(apart, dense, sizeof(T));
}

template <typename T, Way way>
void move_run(T* apart, std::int64_t stride, T* dense, std::int64_t count) {
  if (stride == 1) {
    if constexpr (way == Way::Pack) std::memcpy(dense, apart, static_cast<std::size_t>(count) * sizeof(T));
    else std::memcpy(apart, dense, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  constexpr int unroll = 8;
  std::int64_t k = 0;
  for (; k + unroll <= count; k += unroll, apart += unroll * stride)
    for (int u = 0; u < unroll; ++u) move<T, way>(apart + u * stride, dense + k + u);
  for (; k < count; ++k, apart += stride) move<T, way>(apart, dense + k);
}

// A square of as many elements as a 16-byte register holds, each way, transposed: lists of registers, dealt like cards.
template <typename T, bool streaming>
void transpose(const T* from, std::int64_t from_step, T* to, std::int64_t to_step) {
  constexpr int n = 16 / sizeof(T);
  using Vector [[gnu::vector_size(16)]] = T;
  auto deal = []<int... k>(Vector a, Vector b, int half, std::integer_sequence<int, k...>) {
    return half ? __builtin_shufflevector(a, b, (n / 2 + k / 2 + k % 2 * n)...)
                : __builtin_shufflevector(a, b, (k / 2 + k % 2 * n)...);
  };
  Vector rows[n], dealt[n];
  for (int k = 0; k < n; ++k) std::memcpy(&rows[k], from + k * from_step, 16);
  for (int pass = 1; pass < n; pass *= 2) {
    for (int k = 0; k < n; ++k)
      dealt[k] = deal(rows[k / 2], rows[k / 2 + n / 2], k % 2, std::make_integer_sequence<int, n>{});
    std::memcpy(rows, dealt, sizeof rows);
  }
  for (int k = 0; k < n; ++k) {
    if constexpr (streaming)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k * to_step), reinterpret_cast<__m128i>(rows[k]));
    else std::memcpy(to + k * to_step, &rows[k], 16);
  }
}

// Entries next to each other belong to different rows: by blocks of rows and columns that stay in the first cache, so
// that every line is touched once.
template <typename T, Way way>
void move_block(T* apart, std::int64_t row_stride, std::int64_t stride, T* dense, std::int64_t step, std::int64_t rows,
                std::int64_t columns) {
  constexpr std::int64_t n = 16 / sizeof(T);
  std::int64_t whole_rows = row_stride == 1 ? rows / n * n : 0, whole_columns = columns / n * n;
  constexpr std::int64_t ahead = 64 / sizeof(T), line = 64 / sizeof(T);
  // Streaming stores begin at 16 bytes, and are worth it for whole lines.
  bool lined_up = reinterpret_cast<std::uintptr_t>(apart) % 64 == 0 && stride * sizeof(T) % 64 == 0;
  bool stream = way == Way::UnpackStreaming && lined_up && whole_rows % line == 0;
  for (std::int64_t c = 0; c < whole_columns; c += n) {
    for (std::int64_t k = stream ? c + ahead + n : c + ahead; k < c + ahead + n;
         ++k)  // columns far apart: no processor guesses them
      for (std::int64_t r = 0; r < whole_rows; r += line) __builtin_prefetch(apart + k * stride + r);
    for (std::int64_t r = 0; r < whole_rows; r += n) {
      T *there = apart + c * stride + r, *here = dense + r * step + c;
      if (way == Way::Pack) transpose<T, false>(there, stride, here, step);
      else if (stream) transpose<T, true>(here, step, there, stride);
      else transpose<T, false>(here, step, there, stride);
    }
  }
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r)
      move<T, way>(apart + c * stride + r * row_stride, dense + r * step + c);
}

// The smallest stride, which says what lies next to each other.
std::int64_t closest(std::int64_t count, std::int64_t stride, const Jumps& jumps) {
  std::int64_t least = INT64_MAX;
  for (const Step& step : steps_of(count, stride, jumps))
    if (step.stride != 0) least = std::min(least, std::abs(step.stride));
  return least;
}

template <typename T, Way way>
void copy(const Array& array, std::int64_t first, std::int64_t last, std::int64_t columns, std::byte* memory,
          std::int64_t row_bytes) {
  constexpr std::int64_t block_rows = 256 / sizeof(T), block_columns = 64 / sizeof(T);
  auto step = row_bytes / static_cast<std::int64_t>(sizeof(T));
  auto dense_row = [&](std::int64_t row) { return reinterpret_cast<T*>(memory) + (row - first) * step; };
  auto row_at = [&](std::int64_t row) {
    return static_cast<T*>(array.data) + place_of(row, array.row_stride, array.row_jumps);
  };
  auto column_at = [&](std::int64_t column) { return place_of(column, array.column_stride, array.column_jumps); };
  std::int64_t column_run = array.column_jumps.size() ? array.column_jumps[0].every : columns;
  std::int64_t row_run = array.row_jumps.size() ? array.row_jumps[0].every : last;
  if (closest(columns, array.column_stride, array.column_jumps) <= closest(last, array.row_stride, array.row_jumps)) {
    for (std::int64_t row = first; row < last; ++row)
      for (std::int64_t from = 0; from < columns; from += column_run)
        move_run<T, way>(row_at(row) + column_at(from), array.column_stride, dense_row(row) + from,
                         std::min(column_run, columns - from));
    return;
  }
  for (std::int64_t row = first, rows = 0; row < last; row += rows) {
    rows = std::min({block_rows, last - row, row_run - row % row_run});
    for (std::int64_t from = 0, count = 0; from < columns; from += count) {
      count = std::min({block_columns, columns - from, column_run - from % column_run});
      move_block<T, way>(row_at(row) + column_at(from), array.row_stride, array.column_stride, dense_row(row) + from,
                         step, rows, count);
    }
  }
}

template <Way way>
void copy(const Array& array, std::int64_t first, std::int64_t last, std::int64_t columns, std::byte* memory,
          std::int64_t row_bytes) {
  if (first >= last) return;
  switch (bytes(array.type)) {
    case 1: return copy<std::uint8_t, way>(array, first, last, columns, memory, row_bytes);
    case 2: return copy<std::uint16_t, way>(array, first, last, columns, memory, row_bytes);
    case 4: return copy<std::uint32_t, way>(array, first, last, columns, memory, row_bytes);
    default: return copy<std::uint64_t, way>(array, first, last, columns, memory, row_bytes);
  }
}

}  // namespace

void pack(const Array& array, std::int64_t first, std::int64_t last, std::int64_t columns, std::byte* memory,
          std::int64_t row_bytes) {
  copy<Way::Pack>(array, first, last, columns, memory, row_bytes);
}

void unpack(const Array& array, std::int64_t first, std::int64_t last, std::int64_t columns, const std::byte* memory,
            std::int64_t row_bytes, bool streaming) {
  auto* from = const_cast<std::byte*>(memory);
  if (!streaming) return copy<Way::Unpack>(array, first, last, columns, from, row_bytes);
  copy<Way::UnpackStreaming>(array, first, last, columns, from, row_bytes);
  _mm_sfence();
}

}  // namespace trireme::cpu
