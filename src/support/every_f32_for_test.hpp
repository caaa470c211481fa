// Loops over the f32 numbers, on all cores.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <thread>
#include <vector>

namespace trireme {

// Calls `part(first, last)` for parts of [0, count), each in a thread of its own.
template <typename Part>
void in_parts(std::uint64_t count, Part part) {
  std::uint64_t parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::uint64_t k = 0; k < parts; ++k)
    threads.emplace_back([=] { part(count * k / parts, count * (k + 1) / parts); });
  for (std::thread& thread : threads) thread.join();
}

// Every `step`-th pattern of bits: an odd step visits every exponent, 1 every number.
struct EveryF32 {
  std::uint32_t step = 1;
  std::uint64_t count() const { return ((std::uint64_t{1} << 32) + step - 1) / step; }
  float operator()(std::uint64_t k) const { return std::bit_cast<float>(static_cast<std::uint32_t>(k * step)); }
};

}  // namespace trireme
