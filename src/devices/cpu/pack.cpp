// Copies between strided and dense rows: blocks of rows and columns, in the best order for lines and pages.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "devices/cpu/moves.hpp"
#include "devices/cpu/packing.hpp"
#include "layout/flatten.hpp"

namespace trireme::cpu {
namespace {

// Entries may have any alignment.
template <typename T>
T at(const T* place) {
  T value;
  std::memcpy(&value, place, sizeof(T));
  return value;
}
template <typename T>
void put(T* place, T value) {
  std::memcpy(place, &value, sizeof(T));
}

template <typename T>
void pack_row(const T* strided, std::int64_t stride, T* dense, std::int64_t count) {
  constexpr int n = 16 / sizeof(T);
  using Vector [[gnu::vector_size(16)]] = T;
  auto taken = [&]<int... k>(std::integer_sequence<int, k...>) { return Vector{at(strided + k * stride)...}; };
  for (; count >= n; count -= n, strided += n * stride, dense += n) {  // one store for several loads
    Vector vector = taken(std::make_integer_sequence<int, n>{});
    std::memcpy(dense, &vector, 16);
  }
  for (; count > 0; --count, strided += stride) put(dense++, at(strided));
}

template <typename T>
void unpack_row(T* strided, std::int64_t stride, const T* dense, std::int64_t count) {
  constexpr int n = 16 / sizeof(T);
  for (; count >= n; count -= n, strided += n * stride, dense += n)
    for (int k = 0; k < n; ++k) put(strided + k * stride, at(dense + k));
  for (; count > 0; --count, strided += stride) put(strided, at(dense++));
}

template <typename T>
Block<T> part(const Block<T>& all, std::int64_t row, std::int64_t column) {
  return {all.strided + row * all.row_stride + column * all.stride,
          all.row_stride,
          all.stride,
          all.dense + row * all.step + column,
          all.step,
          all.rows - row,
          all.columns - column,
          all.beyond_cache};
}

template <typename T>
void move_rows(const MoveWidths<T>& moves, Direction direction, const Block<T>& block) {
  const bool packs = direction == Direction::Pack;
  const std::int64_t done = block.stride == 1 ? 0 : moves.wide->by_rows[static_cast<int>(direction)](block);
  const Block<T> rest = part(block, 0, done);
  const std::size_t size = static_cast<std::size_t>(rest.columns) * sizeof(T);
  for (std::int64_t r = 0; r < rest.rows; ++r) {
    T *strided = rest.strided + r * rest.row_stride, *dense = rest.dense + r * rest.step;
    if (rest.stride == 1) std::memcpy(packs ? dense : strided, packs ? strided : dense, size);
    else if (packs) pack_row(strided, rest.stride, dense, rest.columns);
    else unpack_row(strided, rest.stride, dense, rest.columns);
  }
}

template <typename T>
void move_one_by_one(Direction direction, const Block<T>& block) {
  for (std::int64_t c = 0; c < block.columns; ++c)
    for (std::int64_t r = 0; r < block.rows; ++r) {
      T *strided = block.strided + r * block.row_stride + c * block.stride, *dense = block.dense + r * block.step + c;
      if (direction == Direction::Pack) put(dense, at(strided));
      else put(strided, at(dense));
    }
}

// Streaming stores are worth it for whole lines only.
template <typename T>
bool lined_up(const Block<T>& block) {
  return reinterpret_cast<std::uintptr_t>(block.strided) % 64 == 0 && block.stride * sizeof(T) % 64 == 0 &&
         block.rows * sizeof(T) % 64 == 0;
}

// Rows that lie next to each other, in tiles. What is left over takes the smallest tiles that hold it, which end
// where it does, and move some entries again.
template <typename T>
void copy_tiles(const MoveWidths<T>& moves, const Moves<T>& how, Direction direction, const Block<T>& block) {
  const Moves<T>&middle = *moves.middle, &small = *moves.small;
  if (block.rows < how.tile_rows || block.columns < how.tile_columns) {
    if (&how == &small) move_one_by_one(direction, block);
    else copy_tiles(moves, &how == &middle ? small : middle, direction, block);
    return;
  }
  Block<T> whole = block;
  whole.rows = block.rows / how.tile_rows * how.tile_rows;
  whole.columns = block.columns / how.tile_columns * how.tile_columns;
  how.transpose[static_cast<int>(direction == Direction::Stream && !lined_up(whole) ? Direction::Unpack : direction)](
      whole);
  auto smallest = [&](std::int64_t Moves<T>::*side, std::int64_t left) -> const Moves<T>& {
    return small.*side >= left ? small : middle.*side >= left ? middle : how;
  };
  if (std::int64_t left = block.rows - whole.rows) {
    const Moves<T>& rest = smallest(&Moves<T>::tile_rows, left);
    copy_tiles(moves, rest, direction, part(block, block.rows - rest.tile_rows, 0));
  }
  if (std::int64_t left = block.columns - whole.columns) {
    const Moves<T>& rest = smallest(&Moves<T>::tile_columns, left);
    Block<T> right = part(block, 0, block.columns - rest.tile_columns);
    right.rows = whole.rows;
    copy_tiles(moves, rest, direction, right);
  }
}

// Rows lie closer to each other than columns.
template <typename T>
void move_across(const MoveWidths<T>& moves, Direction direction, Block<T> block) {
  if (block.row_stride == -1)  // from the other end
    block = {block.strided - (block.rows - 1),
             1,
             block.stride,
             block.dense + (block.rows - 1) * block.step,
             -block.step,
             block.rows,
             block.columns,
             block.beyond_cache};
  // Four bytes, in the cache: shuffles bound it, and half as wide ones take less than half as long (32x64x128
  // transposed, softmax backward: pack 79 -> 66 us, unpack 47 -> 41). From beyond the cache, whole lines at a time hide
  // more of the latency.
  const bool wide = sizeof(T) != 4 || block.beyond_cache;
  if (block.row_stride == 1) copy_tiles(moves, wide ? *moves.wide : *moves.middle, direction, block);
  else move_one_by_one(direction, block);
}

// The smallest stride, which says what lies next to each other.
std::int64_t closest(std::int64_t count, std::int64_t stride, const Jumps& jumps) {
  if (jumps.size() == 0) return count > 1 && stride != 0 ? std::abs(stride) : INT64_MAX;  // quickly, as it mostly is
  std::int64_t least = INT64_MAX;
  for (const Step& step : steps_of(count, stride, jumps))
    if (step.stride != 0) least = std::min(least, std::abs(step.stride));
  return least;
}

template <typename T>
void copy(const MoveTable& moves, Direction direction, const Array& array, const DenseRows& dense) {
  constexpr std::int64_t block_rows = 256 / sizeof(T);
  const std::int64_t step = dense.row_bytes / static_cast<std::int64_t>(sizeof(T)), columns = dense.columns;
  auto dense_row = [&](std::int64_t row) { return reinterpret_cast<T*>(dense.memory) + (row - dense.first) * step; };
  auto row_at = [&](std::int64_t row) {
    return static_cast<T*>(array.data) + place_of(row, array.row_stride, array.row_jumps);
  };
  const std::int64_t column_run = array.column_jumps.size() ? array.column_jumps[0].every : columns;
  const std::int64_t row_run = array.row_jumps.size() ? array.row_jumps[0].every : dense.last;
  const bool across = rows_lie_closer(array, dense.last, columns);
  for (std::int64_t row = dense.first, rows = 0; row < dense.last; row += rows) {
    rows = std::min({block_rows, dense.last - row, row_run - row % row_run});
    for (std::int64_t from = 0; from < columns; from += column_run) {
      const Block<T> block{row_at(row) + place_of(from, array.column_stride, array.column_jumps),
                           array.row_stride,
                           array.column_stride,
                           dense_row(row) + from,
                           step,
                           rows,
                           std::min(column_run, columns - from),
                           dense.beyond_cache};
      if (across) move_across(moves.of<T>(), direction, block);
      else move_rows(moves.of<T>(), direction, block);
    }
  }
}

void copy(const MoveTable& moves, Direction direction, const Array& array, const DenseRows& dense) {
  switch (bytes(array.type)) {
    case 1: return copy<std::uint8_t>(moves, direction, array, dense);
    case 2: return copy<std::uint16_t>(moves, direction, array, dense);
    case 4: return copy<std::uint32_t>(moves, direction, array, dense);
    default: return copy<std::uint64_t>(moves, direction, array, dense);
  }
}

}  // namespace

bool rows_lie_closer(const Array& array, std::int64_t rows, std::int64_t columns) {
  return closest(rows, array.row_stride, array.row_jumps) < closest(columns, array.column_stride, array.column_jumps);
}

void pack(const MoveTable& moves, const Array& array, const DenseRows& to) { copy(moves, Direction::Pack, array, to); }

void unpack(const MoveTable& moves, const Array& array, const DenseRows& from, bool streaming) {
  copy(moves, streaming ? Direction::Stream : Direction::Unpack, array, from);
}

}  // namespace trireme::cpu
