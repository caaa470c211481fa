// Registers of 32 bytes for tiles and what lies backwards, of 16 for columns apart. Nothing is read beyond a row's
// last entry; stores that leave out what lies between entries are slow on some processors with AVX2, so that entries
// apart are written one by one.
#include <immintrin.h>

#include <cstdlib>

#define TRIREME_TARGET gnu::target("avx2")
namespace trireme::cpu {
namespace {
template <int R, typename Vector>
[[TRIREME_TARGET, gnu::always_inline]] inline void stream(void* to, const Vector& from) {
  if constexpr (R == 32) _mm256_stream_si256(static_cast<__m256i*>(to), reinterpret_cast<const __m256i&>(from));
  else _mm_stream_si128(static_cast<__m128i*>(to), reinterpret_cast<const __m128i&>(from));
}
}  // namespace
}  // namespace trireme::cpu
#include "devices/cpu/transpose_tiles.hpp"
#include "devices/cpu/x86/moves.hpp"

namespace trireme::cpu {
namespace {

template <typename T>
constexpr int in_16 = 16 / static_cast<int>(sizeof(T));

// Whole registers of columns. 16 bytes of entries lie in `stride` times 16 bytes of memory, from the lowest entry to
// the highest: each byte of them is one of those, in parts of 16 bytes. The last part ends with the highest entry.
template <typename T, int stride>
[[TRIREME_TARGET]] void pack_rows(const Block<T> block) {  // its own: stores of vectors may alias anything
  constexpr int n = in_16<T>, size = sizeof(T), last = ((n - 1) * stride + 1) * size - 16;
  int from[stride];
  __m128i which[stride];  // byte of a part for each byte of the entries, or none
  for (int k = 0; k < stride; ++k) {
    alignas(16) std::int8_t bytes[16];
    from[k] = std::min(16 * k, last);  // of 8 bytes, 4 apart, the last but one would end beyond it, too
    for (int t = 0; t < 16; ++t) {
      int entry = block.stride > 0 ? t / size : n - 1 - t / size, byte = entry * stride * size + t % size;
      bytes[t] = static_cast<std::int8_t>(byte / 16 == k ? byte - from[k] : -1);
    }
    which[k] = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
  }
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const T* row = block.strided + r * block.row_stride + (block.stride > 0 ? 0 : (block.columns - 1) * block.stride);
    for (std::int64_t c = 0; c < block.columns; c += n) {  // upwards in memory, as it is fetched ahead
      const T* lowest = row + c * stride;
      T* dense = block.dense + r * block.step + (block.stride > 0 ? c : block.columns - n - c);
      __m128i entries = _mm_setzero_si128();
#pragma GCC unroll 4
      for (int k = 0; k < stride; ++k) {
        const auto* part = reinterpret_cast<const __m128i*>(reinterpret_cast<const char*>(lowest) + from[k]);
        entries = _mm_or_si128(entries, _mm_shuffle_epi8(_mm_loadu_si128(part), which[k]));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dense), entries);
    }
  }
}

// Whole registers of 32 bytes of columns that lie backwards, in either direction; past the caches where they begin at
// 32 bytes.
template <typename T, Direction direction>
[[TRIREME_TARGET]] std::int64_t backwards(const Block<T> block) {
  constexpr int n = in_register<T, 32>, size = sizeof(T);
  const std::int64_t whole = block.columns / n * n;
  alignas(16) std::int8_t bytes[16];  // of each half; the halves are swapped as well
  for (int t = 0; t < 16; ++t) bytes[t] = static_cast<std::int8_t>((16 / size - 1 - t / size) * size + t % size);
  const __m256i which = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
  for (std::int64_t r = 0; r < block.rows; ++r) {
    T *row = block.strided + r * block.row_stride - (whole - 1), *dense = block.dense + r * block.step + whole - n;
    const bool streams = direction == Direction::Stream && reinterpret_cast<std::uintptr_t>(row) % 32 == 0;
    for (std::int64_t c = 0; c < whole; c += n) {  // upwards in memory, as it is fetched ahead
      auto *strided = reinterpret_cast<__m256i*>(row + c), *copy = reinterpret_cast<__m256i*>(dense - c);
      const __m256i entries = _mm256_loadu_si256(direction == Direction::Pack ? strided : copy);
      const __m256i turned = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(entries, which), 0x4e);
      if (streams) _mm256_stream_si256(strided, turned);
      else _mm256_storeu_si256(direction == Direction::Pack ? copy : strided, turned);
    }
  }
  return whole;
}

template <typename T, Direction direction>
std::int64_t by_rows(const Block<T>& block) {
  if (block.stride == -1) return backwards<T, direction>(block);
  if (direction != Direction::Pack) return 0;
  Block<T> whole = block;
  whole.columns = block.columns / in_16<T> * in_16<T>;
  switch (std::abs(block.stride)) {
    case 2: return pack_rows<T, 2>(whole), whole.columns;
    case 3: return pack_rows<T, 3>(whole), whole.columns;
    case 4: return pack_rows<T, 4>(whole), whole.columns;
    default: return 0;  // one by one is as good
  }
}

template <typename T, int R>
constexpr Moves<T> moves_by = {
    {by_rows<T, Direction::Pack>, by_rows<T, Direction::Unpack>, by_rows<T, Direction::Stream>},
    {transpose_tiles<T, R, Direction::Pack>, transpose_tiles<T, R, Direction::Unpack>,
     transpose_tiles<T, R, Direction::Stream>},
    in_register<T, R>,
    tile_size<T, R>,
};

}  // namespace

template <typename T>
const Moves<T>& avx2_moves(bool small) {  // small: for what is left over
  return small ? moves_by<T, 16> : moves_by<T, 32>;
}

template const Moves<std::uint8_t>& avx2_moves(bool);
template const Moves<std::uint16_t>& avx2_moves(bool);
template const Moves<std::uint32_t>& avx2_moves(bool);
template const Moves<std::uint64_t>& avx2_moves(bool);

}  // namespace trireme::cpu
