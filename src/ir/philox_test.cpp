#include "ir/philox.hpp"

#include <gtest/gtest.h>

namespace trireme::philox {
namespace {

// The known answers that come with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(encrypt({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(encrypt({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(encrypt({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Each element has a word of its own: the counter is (j / 4, low i, high i, stream), the key the seed.
TEST(Philox, ElementsTakeWordsInOrder) {
  const std::int64_t seed = 0x299f31d0a4093822, row = 0x13198a2e85a308d3;
  const std::int64_t column = std::int64_t{0x243f6a88} * 4;
  const std::uint32_t words[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  for (int k = 0; k < 4; ++k) {
    const float number = uniform(seed, row, column + k, 0x03707344);
    EXPECT_EQ(number, static_cast<float>(words[k] >> 9) / 8388608.0f) << k;
  }
}

}  // namespace
}  // namespace trireme::philox
