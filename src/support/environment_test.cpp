#include "support/environment.hpp"

#include <gtest/gtest.h>

#include "support/environment_for_test.hpp"

namespace trireme::environment {
namespace {

TEST(Environment, HiddenInstructionSetsTakeTheWiderOnesAlong) {
  auto hidden = [](std::optional<std::string> value) {
    trireme::Environment set("TRIREME_HIDE", std::move(value));
    return first_hidden();
  };
  EXPECT_EQ(hidden(std::nullopt).value(), std::nullopt);
  EXPECT_EQ(hidden("").value(), std::nullopt);
  EXPECT_EQ(hidden("avx2").value(), 0u);
  EXPECT_EQ(hidden("AVX512").value(), 1u);
  EXPECT_EQ(hidden("avx512_bf16").value(), 2u);
  EXPECT_EQ(hidden("avx512_bf16, Avx2").value(), 0u);
  for (const char* bad : {"avx9", "avx512,", ",", "avx2;avx512", "none"}) {
    Result<std::optional<std::size_t>> refused = hidden(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, Code::InvalidArgument);
    EXPECT_EQ(refused.error().message,
              "TRIREME_HIDE is a list of avx2, avx512, avx512_bf16, not '" + std::string(bad) + "'");
  }
}

}  // namespace
}  // namespace trireme::environment
