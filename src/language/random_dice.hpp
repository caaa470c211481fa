// The dice of random programs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace trireme {

// splitmix64: unlike <random>'s distributions, the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t count) { return bits() % count; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <typename List>
  const auto& one_of(const List& list) {
    return *(std::begin(list) + below(std::size(list)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace trireme
