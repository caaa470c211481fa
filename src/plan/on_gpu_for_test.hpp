// Tests on a real GPU; elsewhere they are skipped, and say why.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "devices/cuda/cuda_device.hpp"

namespace trireme {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    auto driver = cuda::Driver::instance();
    if (!driver) GTEST_SKIP() << "no GPU: " << driver.error().message;
    auto found = driver.value()->device(0);
    if (!found) GTEST_SKIP() << "no GPU: " << found.error().message;
    device = *found;
  }
  const cuda::Device* device = nullptr;
};

inline bool long_runs() {
  const char* said = std::getenv("LONG");
  return said && std::string_view(said) == "1";
}

inline constexpr std::uint8_t poison = 0xA5;  // what results are full of before a run

}  // namespace trireme
