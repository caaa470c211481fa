// The example's kernel: judged by ptxas, and on a GPU compared with rms_norm, bit for bit.
#define main per_head_rmsnorm_main
#include "examples/per_head_rmsnorm.cpp"
#undef main

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "devices/cuda/driver.hpp"
#include "problem/samples.hpp"
#include "trireme/jit.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

std::vector<float> sampled(std::int64_t count, const char* name) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k)
    values[static_cast<std::size_t>(k)] = static_cast<float>(sample_value(sample_draw(0, name, k), Type::F32, {}));
  return values;
}

TEST(PerHeadRmsnorm, PtxasAcceptsIt) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "ptxas is not on PATH";
  std::string path = testing::TempDir() + "/trireme_example_" + std::to_string(getpid()) + ".ptx";
  const char* archs[] = {"sm_80", "sm_90", "sm_100", "sm_120"};
  int turn = 0;
  for (int head_dim : {1, 64, 100, 128, 256}) {
    const char* arch = archs[turn++ % 4];
    std::ofstream(path) << per_head_rmsnorm({.head_dim = head_dim, .arch = arch}).value();
    EXPECT_EQ(std::system(("ptxas -arch=" + std::string(arch) + " " + path + " -o /dev/null").c_str()), 0) << head_dim;
  }
  std::remove(path.c_str());
}

TEST(PerHeadRmsnorm, OtherSizesAreRefused) {
  EXPECT_FALSE(per_head_rmsnorm({.head_dim = 0}));
  EXPECT_FALSE(per_head_rmsnorm({.head_dim = 257}));
}

TEST(PerHeadRmsnorm, GivesTheBitsOfRmsNorm) {
  auto driver = cuda::Driver::instance();
  if (!driver) GTEST_SKIP() << "no GPU: " << driver.error().message;
  const cuda::Device& device = *(*driver)->device(0).value();
  for (int head_dim : {1, 31, 32, 64, 80, 128, 192, 256})
    for (float epsilon : {1e-6f, 1e-3f}) {
      constexpr std::int64_t heads = 1000;
      std::vector<float> x = sampled(heads * head_dim, "x"), gamma = sampled(head_dim, "gamma");
      std::vector<float> wanted(x.size()), got(x.size());
      Plan plan = Plan::create(Device::reference(), {.program = RowProgram::named("rms_norm").value(),
                                                     .shape = {heads, head_dim},
                                                     .constants = {{"eps", epsilon}},
                                                     .results = {{"y"}}})
                      .value();
      Args args = plan.args();
      args["x"] = View{x.data()}, args["gamma"] = View{gamma.data()}, args["y"] = View{wanted.data()};
      plan.run(args).value();
      auto bytes = [](const std::vector<float>& values) { return values.size() * sizeof(float); };
      cuda::Memory input = device.allocate(bytes(x)).value(), output = device.allocate(bytes(x)).value();
      cuda::Memory weights = device.allocate(bytes(gamma)).value();
      device.copy(input.get(), x.data(), bytes(x)).value();
      device.copy(weights.get(), gamma.data(), bytes(gamma)).value();
      device.fill(output.get(), 0xA5, bytes(x)).value();
      std::string text = per_head_rmsnorm({.head_dim = head_dim, .epsilon = epsilon}).value();
      jit::Kernel kernel = jit::from_ptx(text, "per_head_rmsnorm").value();
      kernel.launch({heads}, {32}, 0, nullptr, input.get(), output.get(), weights.get()).value();
      device.synchronize().value();
      device.copy(got.data(), output.get(), bytes(got)).value();
      EXPECT_EQ(got, wanted) << "head_dim " << head_dim << ", epsilon " << epsilon;
    }
}

}  // namespace
}  // namespace trireme
