// What the host's processor has beyond the language, each in portable words.
#pragma once
#include <cstddef>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace trireme {

// As Linux and wheels name it.
#if defined(__aarch64__)
inline constexpr char processor[] = "aarch64";
#else
inline constexpr char processor[] = "x86_64";
#endif

// In loops that watch memory: lets the other thread of a core go on.
inline void pause_briefly() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

// Copies whole cache lines, which begin at 64 bytes, past the caches.
#if defined(__SSE2__)
inline constexpr bool has_streaming_stores = true;
inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    __m128i values[4];
    for (int k = 0; k < 4; ++k) values[k] = _mm_load_si128(source + k);
    for (int k = 0; k < 4; ++k) _mm_stream_si128(target + k, values[k]);
  }
  _mm_sfence();
}
inline void fence_streaming_stores() { _mm_sfence(); }  // others see them after it
#else
inline constexpr bool has_streaming_stores = false;
inline void fence_streaming_stores() {}
inline void copy_streaming(std::byte*, const std::byte*, std::size_t) {}
#endif

}  // namespace trireme
