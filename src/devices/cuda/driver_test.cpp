// The CUDA driver: against a real GPU where there is one, and always against fake_driver.c, which shows every refusal.
#include "devices/cuda/driver.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "devices/cuda/fake_driver_for_test.hpp"
#include "trireme/ptx.hpp"

namespace trireme::cuda {
namespace {

TEST(CudaDriver, MissingLibraryIsNamed) {
  auto driver = Driver::load("libtrireme_no_such_driver.so.1", KernelCache::process());
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, Code::NoDevice);
  EXPECT_NE(driver.error().message.find("the CUDA driver's library is missing: libtrireme_no_such_driver.so.1"),
            std::string::npos)
      << driver.error().message;
}

TEST(CudaDriver, AnotherLibraryIsNotTakenForIt) {
  auto driver = Driver::load("libm.so.6", KernelCache::process());
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().message, "libm.so.6 is not the CUDA driver: cuDriverGetVersion is missing or fails");
}

struct Refused {
  std::string flags;
  Code code;
  std::string why;  // after the library's name where it begins with a blank
};

TEST_F(FakeDriver, RefusalsSayWhy) {
  const Refused refusals[] = {
      {"-DVERSION=11040", Code::Unsupported, " is the driver of CUDA 11.4; at least CUDA 11.8 (driver 520) is needed"},
      {"-DONLY_VERSION", Code::Driver, " (CUDA 12.8) has no cuInit"},
      {"-DINIT=100", Code::NoDevice, "cuInit: CUDA_ERROR_NO_DEVICE (100): what it means"},
      {"-DINIT=77", Code::Driver, "cuInit: unknown error (77)"},
      {"-DDEVICES=0", Code::NoDevice, " sees no GPU"},
  };
  for (const Refused& each : refusals) {
    std::string library = fake(each.flags);
    if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
    auto driver = Driver::load(library.c_str(), cache);
    ASSERT_FALSE(driver) << each.why;
    EXPECT_EQ(driver.error().code, each.code);
    EXPECT_EQ(driver.error().message, each.why[0] == ' ' ? library + each.why : each.why);
  }
}

TEST_F(FakeDriver, EveryCallRunsInTheDevicesContextAndReleasesItsHandles) {
  std::string library = fake("");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  auto driver = Driver::load(library.c_str(), cache);
  ASSERT_TRUE(driver) << driver.error().message;
  FakeCounts counts(library);

  EXPECT_EQ((*driver)->version(), 12080);
  EXPECT_EQ((*driver)->device_count(), 2);
  EXPECT_EQ((*driver)->device(2).error().message, "there is no CUDA device 2; they are numbered 0 to 1");
  const Device& device = *(*driver)->device(1).value();
  EXPECT_EQ(device.facts().name, "Fake GPU");
  EXPECT_EQ(device.facts().capability, 90);
  EXPECT_EQ(device.facts().multiprocessors, 16);  // the fake answers with an attribute's number
  EXPECT_EQ(device.facts().shared_bytes_per_block, 97);
  EXPECT_EQ(device.facts().l2_bytes, 38);
  EXPECT_TRUE(device.facts().clusters);

  {
    Module module = device.load("good").value();
    Function function = device.function(module, "rows").value();
    FunctionFacts facts = device.function_facts(function).value();
    EXPECT_EQ(facts.registers, 104);
    EXPECT_EQ(facts.local_bytes, 103);
    EXPECT_EQ(facts.max_dynamic_shared_bytes, 108);
    EXPECT_TRUE(device.allow_shared(function, 100000));
    EXPECT_TRUE(device.allow_shared(function, 50000));  // another user's need takes nothing away
    EXPECT_EQ(device.function_facts(function).value().max_dynamic_shared_bytes, 100000);
    EXPECT_TRUE(device.allow_large_clusters(function));
    EXPECT_EQ(device.blocks_per_multiprocessor(function, 256, 0).value(), 8);

    Stream stream = device.stream().value();
    unsigned seen[11] = {};
    unsigned* out = seen;
    void* params[] = {&out};
    Launch launch{.grid = {7, 2}, .block = {128}, .shared_bytes = 512, .cluster = 4, .overlap_previous = true};
    EXPECT_TRUE(device.launch(function, launch, params));
    EXPECT_EQ((std::vector<unsigned>(seen, seen + 11)), (std::vector<unsigned>{7, 2, 1, 128, 1, 1, 512, 4, 1, 1, 1}));

    Memory memory = device.allocate(64).value();
    char host[64] = {};
    const char* inside = static_cast<const char*>(memory.get());  // the fake's memory is the host's
    EXPECT_TRUE(device.copy(memory.get(), "copied", 7));
    EXPECT_STREQ(inside, "copied");
    EXPECT_TRUE(device.fill(memory.get(), 3, 64));
    EXPECT_EQ(inside[63], 3);
    EXPECT_TRUE(device.copy_async(host, memory.get(), 64, stream.get()));
    EXPECT_TRUE(device.synchronize(stream.get()));
    EXPECT_TRUE(device.synchronize());
    EXPECT_EQ(host[63], 3);
    EXPECT_EQ(device.device_of(memory.get()).value(), 0);

    Event first = device.event().value(), last = device.event().value();
    EXPECT_TRUE(device.record(first, stream.get()));
    EXPECT_TRUE(device.record(last, stream.get()));
    EXPECT_EQ(device.milliseconds(first, last).value(), 1.5f);
    Graph graph = device.capture(stream.get(), [&] { return device.launch(function, {}, params); }).value();
    EXPECT_TRUE(device.launch(graph, stream.get()));
    auto refused = device.capture(stream.get(), []() -> Status { return Error{Code::Driver, "no work"}; });
    EXPECT_EQ(refused.error().message, "no work");
  }
  EXPECT_EQ(counts.of("fake_live"), 0);
  EXPECT_EQ(counts.of("fake_depth"), 0);

  Error bad = device.load("bad").error();
  EXPECT_EQ(bad.code, Code::Driver);
  EXPECT_EQ(bad.message,
            "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): what it means\n"
            "ptxas application ptx input, line 7; fatal   : Parsing error");
  Error newer = device.load(".version 99.0\ntoo new").error();
  EXPECT_EQ(newer.code, Code::Unsupported);
  EXPECT_EQ(newer.message,
            "cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): what it means\n"
            "the driver is that of CUDA 12.8 and knows no later PTX; the module begins .version 99.0");
  EXPECT_EQ(device.function(Module(), "missing").error().message,
            "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500): what it means ('missing')");
  Error full = device.allocate(std::size_t{1} << 41).error();
  EXPECT_EQ(full.code, Code::OutOfMemory);
  EXPECT_EQ(full.message, "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): what it means (2199023255552 bytes)");
}

// The real driver, or a clear word why there is none.
class RealDriver : public testing::Test {
 protected:
  void SetUp() override {
    auto driver = Driver::instance();
    if (!driver) {
      EXPECT_FALSE(driver.error().message.empty());
      EXPECT_NE(driver.error().code, Code::Internal);
      GTEST_SKIP() << "no GPU: " << driver.error().message;
    }
    device = driver.value()->device(0).value();
  }
  const Device* device = nullptr;
};

// x[i] = x[i] * scale + block's rank in its cluster, 1024 elements a block.
std::string scale_kernel(int capability, unsigned cluster) {
  using namespace ptx;
  ptx::Module module("sm_" + std::to_string(capability >= 90 ? capability : 80));
  ptx::Kernel& k = module.kernel("scale", {.reqntid = {256}, .reqnctapercluster = cluster});
  U64 x = k.load(k.param<U64>("x"));
  F32 scale = k.load(k.param<F32>("scale"));
  U32 index = k.mad(k.read(Special::CtaidX), 256, k.read(Special::TidX));
  Global at{k.mad_wide_u(index, 16, x)};
  F32 rank = cluster ? k.cvt_u<F32>(k.read(Special::ClusterCtarank)) : k.constant<F32>(0.0f);
  Shared staged{k.mad(k.read(Special::TidX), 16, k.dynamic_shared(60 << 10).base)};
  k.cp_async(staged, at, 16);
  k.cp_async_commit();
  k.cp_async_wait(0);
  std::array<F32, 4> v = {k.reg<F32>(), k.reg<F32>(), k.reg<F32>(), k.reg<F32>()};
  k.load<F32>(v, staged);
  for (F32 each : v) k.fma(each, scale, rank, into(each));
  k.store<F32>(at, v, {.cache = Cache::Cs});
  return module.text().value();
}

TEST_F(RealDriver, RunsAKernelFromManyThreadsInAGraphAndInClusters) {
  const DeviceFacts& facts = device->facts();
  RecordProperty("device", facts.name);
  EXPECT_GE(facts.capability, 70);
  EXPECT_GT(facts.multiprocessors, 0);
  EXPECT_GE(facts.shared_bytes_per_block, 64 << 10);
  EXPECT_GT(facts.memory_bytes, std::size_t{1} << 30);

  for (unsigned cluster : facts.clusters ? std::vector<unsigned>{0, 4} : std::vector<unsigned>{0}) {
    Module module = device->load(scale_kernel(facts.capability, cluster)).value();
    Function function = device->function(module, "scale").value();
    ASSERT_TRUE(device->allow_shared(function, 60 << 10));
    FunctionFacts about = device->function_facts(function).value();
    EXPECT_GT(about.registers, 0);
    EXPECT_EQ(about.local_bytes, 0);
    EXPECT_GE(about.max_dynamic_shared_bytes, 60 << 10);
    EXPECT_GE(device->blocks_per_multiprocessor(function, 256, 60 << 10).value(), 1);

    auto work = [&] {  // each thread on its own stream and memory
      constexpr std::size_t count = 8 * 1024;
      std::vector<float> host(count);
      std::iota(host.begin(), host.end(), 0.0f);
      Memory memory = device->allocate(count * sizeof(float)).value();
      EXPECT_EQ(device->device_of(memory.get()).value(), 0);
      Stream stream = device->stream().value();
      device->copy_async(memory.get(), host.data(), count * sizeof(float), stream.get()).value();
      void* x = memory.get();
      float scale = 2.0f;
      void* params[] = {&x, &scale};
      Launch launch{.grid = {8}, .block = {256}, .shared_bytes = 60 << 10, .cluster = cluster, .stream = stream.get()};
      device->launch(function, launch, params).value();
      Graph graph = device->capture(stream.get(), [&] { return device->launch(function, launch, params); }).value();
      Event first = device->event().value(), last = device->event().value();
      device->record(first, stream.get()).value();
      device->launch(graph, stream.get()).value();
      device->record(last, stream.get()).value();
      device->synchronize(last).value();
      EXPECT_GT(device->milliseconds(first, last).value(), 0.0f);
      std::vector<float> result(count);
      device->copy(result.data(), memory.get(), count * sizeof(float)).value();
      for (std::size_t i = 0; i < count; ++i) {
        float rank = cluster ? static_cast<float>(i / 1024 % cluster) : 0.0f;
        ASSERT_EQ(result[i], (host[i] * 2 + rank) * 2 + rank) << i;
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
    for (std::thread& each : threads) each.join();
  }
}

TEST_F(RealDriver, RefusalsCarryTheLog) {
  Error bad =
      device->load(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }\n").error();
  EXPECT_NE(bad.message.find("CUDA_ERROR_INVALID_PTX (218)"), std::string::npos) << bad.message;
  EXPECT_NE(bad.message.find("line 4"), std::string::npos) << bad.message;
  Error newer = device->load(".version 99.0\n.target sm_80\n.address_size 64\n").error();
  EXPECT_EQ(newer.code, Code::Unsupported) << newer.message;
  Error full = device->allocate(std::size_t{1} << 50).error();
  EXPECT_EQ(full.code, Code::OutOfMemory) << full.message;
  Module module = device->load(".version 7.0\n.target sm_80\n.address_size 64\n").value();
  EXPECT_NE(device->function(module, "missing").error().message.find("CUDA_ERROR_NOT_FOUND (500)"), std::string::npos);
}

}  // namespace
}  // namespace trireme::cuda
