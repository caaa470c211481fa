// Whole cache lines at a time. Nothing is read beyond a row's last entry, and nothing written between entries.
#include <immintrin.h>

#include <cstdlib>

#define TRIREME_TARGET gnu::target("avx512f,avx512bw")
namespace trireme::cpu {
namespace {
template <int R, typename Vector>
[[TRIREME_TARGET, gnu::always_inline]] inline void stream(void* to, const Vector& from) {
  _mm512_stream_si512(static_cast<__m512i*>(to), reinterpret_cast<const __m512i&>(from));
}
}  // namespace
}  // namespace trireme::cpu
#include "devices/cpu/transpose_tiles.hpp"
#include "devices/cpu/x86/moves.hpp"

namespace trireme::cpu {
namespace {

// Entry t of `from` that `which` names, for each t of `where`; others as they were.
template <typename T>
[[TRIREME_TARGET, gnu::always_inline]] inline __m512i taken(__m512i were, std::uint32_t which, __m512i where,
                                                            __m512i from) {
  if constexpr (sizeof(T) == 2) return _mm512_mask_permutexvar_epi16(were, which, where, from);
  else if constexpr (sizeof(T) == 4)
    return _mm512_mask_permutexvar_epi32(were, static_cast<__mmask16>(which), where, from);
  else return _mm512_mask_permutexvar_epi64(were, static_cast<__mmask8>(which), where, from);
}
template <typename T>
[[TRIREME_TARGET, gnu::always_inline]] inline __m512i load(std::uint32_t which, const T* from) {
  if constexpr (sizeof(T) == 2) return _mm512_maskz_loadu_epi16(which, from);
  else if constexpr (sizeof(T) == 4) return _mm512_maskz_loadu_epi32(static_cast<__mmask16>(which), from);
  else return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(which), from);
}
template <typename T>
[[TRIREME_TARGET, gnu::always_inline]] inline void store(T* to, std::uint32_t which, __m512i from) {
  if constexpr (sizeof(T) == 2) _mm512_mask_storeu_epi16(to, which, from);
  else if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(which), from);
  else _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(which), from);
}

// A line's worth of entries lies in `lines` lines' worth of memory, from the lowest on. Entry t is element t * lines of
// it, or downwards as many from the other end.
template <typename T, int lines>
struct Where {
  alignas(64) T dense[in_register<T, 64>];           // each entry's place in its line of memory
  alignas(64) T strided[lines][in_register<T, 64>];  // each line's elements: which entry
  std::uint32_t dense_of[lines] = {};                // which entries come from a line
  std::uint32_t apart_of[lines] = {};                // which elements of a line are entries
  constexpr explicit Where(bool up) : dense{}, strided{} {
    constexpr int n = in_register<T, 64>;
    for (int t = 0; t < n; ++t) {
      int element = (up ? t : n - 1 - t) * lines;
      dense[t] = static_cast<T>(element % n);
      dense_of[element / n] |= 1u << t;
      strided[element / n][element % n] = static_cast<T>(t);
      apart_of[element / n] |= 1u << element % n;
    }
  }
};

// Whole registers of columns that are `lines` apart, in either direction.
template <typename T, Direction direction, int lines>
[[TRIREME_TARGET]] void rows_apart(const Block<T> block) {  // its own: stores of vectors may alias anything
  constexpr int n = in_register<T, 64>;
  constexpr std::uint32_t up_to_last = ~0u >> (32 - (n - (lines - 1)));  // of the highest line
  const bool up = block.stride > 0;
  static constexpr Where<T, lines> upwards(true), downwards(false);
  const Where<T, lines> where = up ? upwards : downwards;
  const __m512i to_dense = _mm512_load_si512(where.dense);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    T* row = block.strided + r * block.row_stride + (up ? 0 : (block.columns - 1) * block.stride);  // its lowest entry
    // Backwards: whole lines, where they begin at 64 bytes.
    const bool streams =
        direction == Direction::Stream && lines == 1 && reinterpret_cast<std::uintptr_t>(row) % 64 == 0;
    for (std::int64_t c = 0; c < block.columns; c += n) {  // upwards in memory, as it is fetched ahead
      T *lowest = row + c * lines, *dense = block.dense + r * block.step + (up ? c : block.columns - n - c);
      if constexpr (direction == Direction::Pack) {
        __m512i entries = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int k = 0; k < lines; ++k) {
          const __m512i line = k < lines - 1 ? _mm512_loadu_si512(lowest + k * n) : load(up_to_last, lowest + k * n);
          entries = taken<T>(entries, where.dense_of[k], to_dense, line);
        }
        _mm512_storeu_si512(dense, entries);
      } else {
        const __m512i entries = _mm512_loadu_si512(dense);
#pragma GCC unroll 4
        for (int k = 0; k < lines; ++k) {
          const __m512i line = taken<T>(entries, ~0u, _mm512_load_si512(where.strided[k]), entries);
          if (streams) _mm512_stream_si512(reinterpret_cast<__m512i*>(lowest), line);
          else store(lowest + k * n, where.apart_of[k], line);
        }
      }
    }
  }
}

template <typename T, Direction direction>
std::int64_t by_rows(const Block<T>& block) {
  Block<T> whole = block;
  whole.columns = block.columns / in_register<T, 64> * in_register<T, 64>;
  switch (std::abs(block.stride)) {
    case 1: return rows_apart<T, direction, 1>(whole), whole.columns;
    case 2: return rows_apart<T, direction, 2>(whole), whole.columns;
    case 3: return rows_apart<T, direction, 3>(whole), whole.columns;
    case 4: return rows_apart<T, direction, 4>(whole), whole.columns;
    default: return 0;  // a line has so few of them that one by one is as good
  }
}

template <typename T>
constexpr Moves<T> wide_moves = {
    {by_rows<T, Direction::Pack>, by_rows<T, Direction::Unpack>, by_rows<T, Direction::Stream>},
    {transpose_tiles<T, 64, Direction::Pack>, transpose_tiles<T, 64, Direction::Unpack>,
     transpose_tiles<T, 64, Direction::Stream>},
    in_register<T, 64>,
    tile_size<T, 64>,
};

}  // namespace

template <typename T>
const Moves<T>& avx512_moves() {
  return wide_moves<T>;
}

template const Moves<std::uint16_t>& avx512_moves();
template const Moves<std::uint32_t>& avx512_moves();
template const Moves<std::uint64_t>& avx512_moves();

}  // namespace trireme::cpu
