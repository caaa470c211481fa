// Blocks of entries copied between strided and dense rows with the registers of an instruction set.
#pragma once
#include <cstdint>

namespace trireme::cpu {

enum class Way : std::uint8_t {
  Pack,    // from strided to dense
  Unpack,  // back
  Stream,  // back, past the caches
};

// Entry (r, c): apart[r * row_stride + c * stride] and dense[r * step + c]. T: an unsigned integer of the entry's size.
template <typename T>
struct Block {
  T* apart;
  std::int64_t row_stride, stride;
  T* dense;
  std::int64_t step, rows, columns;
  bool far;  // worth fetching ahead
};

template <typename T>
struct Moves {
  // All ways: as many columns as it can do well, which it returns.
  std::int64_t (*by_rows[3])(const Block<T>&);
  // All ways: a block of whole squares whose rows lie next to each other. Stream: its lines begin at 64 bytes.
  void (*squares[3])(const Block<T>&);
  std::int64_t square_rows, square_columns;
};

template <typename T>
const Moves<T>& avx2_moves(bool small);  // squares
template <typename T>
const Moves<T>& avx512_moves();  // not for bytes, which have no permutations across a register before VBMI

}  // namespace trireme::cpu
