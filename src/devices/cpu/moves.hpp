// Blocks of entries copied between strided and dense rows with the registers of an instruction set.
#pragma once
#include <cstdint>

namespace trireme::cpu {

enum class Direction : std::uint8_t {
  Pack,    // from strided to dense
  Unpack,  // back
  Stream,  // back, past the caches
};

// Entry (r, c): strided[r * row_stride + c * stride] and dense[r * step + c]. T: an unsigned integer of the entry's
// size.
template <typename T>
struct Block {
  T* strided;
  std::int64_t row_stride, stride;
  T* dense;
  std::int64_t step, rows, columns;
  bool beyond_cache;  // worth prefetching
};

template <typename T>
struct Moves {
  // All directions: as many columns as it can do well, which it returns.
  std::int64_t (*by_rows[3])(const Block<T>&);
  // All directions: a block of whole tiles whose rows lie next to each other. Stream: its lines begin at 64 bytes.
  void (*transpose[3])(const Block<T>&);
  std::int64_t tile_rows, tile_columns;
};

// An instruction set's: with its widest registers, for entries in the cache, and for what is left over.
template <typename T>
struct MoveWidths {
  const Moves<T>*wide, *middle, *small;
};
struct MoveTable {
  MoveWidths<std::uint8_t> of_1;
  MoveWidths<std::uint16_t> of_2;
  MoveWidths<std::uint32_t> of_4;
  MoveWidths<std::uint64_t> of_8;

  template <typename T>
  const MoveWidths<T>& of() const {
    if constexpr (sizeof(T) == 1) return of_1;
    else if constexpr (sizeof(T) == 2) return of_2;
    else if constexpr (sizeof(T) == 4) return of_4;
    else return of_8;
  }
};

}  // namespace trireme::cpu
