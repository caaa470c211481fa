// Loading through the kernel cache, against fake_driver.c; on a GPU, that linked and loaded code are told apart.
#include "devices/cuda/modules.hpp"

#include <atomic>
#include <thread>

#include "devices/cuda/cuda_device.hpp"
#include "devices/cuda/fake_driver_for_test.hpp"
#include "language/parse.hpp"
#include "passes/passes.hpp"

namespace trireme::cuda {
namespace {

class CudaModules : public FakeDriver {
 protected:
  // A process of its own, as far as the driver and the caches can tell.
  struct Process {
    std::unique_ptr<KernelCache> cache;
    std::unique_ptr<const Driver> driver;
    const Device* device;
  };
  Process process(const std::string& library, bool disk = true) {
    Process made;
    made.cache = std::make_unique<KernelCache>(disk ? KernelCache::Options{.folder = (folder / "cache").string()}
                                                    : KernelCache::Options{});
    made.driver = Driver::load(library.c_str(), *made.cache).value();
    made.device = made.driver->device(0).value();
    return made;
  }
};

TEST_F(CudaModules, TheSameTextIsLinkedOnceAndLoadedOnce) {
  std::string library = fake("");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  FakeCounts counts(library);
  Process first = process(library);
  ASSERT_TRUE(first.device->modules().linked_is_as_good());
  int links = counts.of("fake_links"), loads = counts.of("fake_loads"), live = counts.of("fake_live");
  {
    std::vector<std::thread> threads;
    std::vector<Module> modules(16);
    for (Module& each : modules) threads.emplace_back([&] { each = first.device->load(".entry rows(\n").value(); });
    for (std::thread& each : threads) each.join();
    for (Module& each : modules) EXPECT_EQ(each.get(), modules[0].get());
    EXPECT_EQ(counts.of("fake_links"), links + 1);
    EXPECT_EQ(counts.of("fake_loads"), loads + 1);
    Module other = first.device->load(".entry columns(\n").value();
    EXPECT_NE(other.get(), modules[0].get());
    EXPECT_EQ(counts.of("fake_links"), links + 2);
  }
  EXPECT_EQ(counts.of("fake_live"), live);  // the last user unloads
  Module again = first.device->load(".entry rows(\n").value();
  EXPECT_EQ(counts.of("fake_links"), links + 2);

  Process second = process(library);
  links = counts.of("fake_links");
  Module from_disk = second.device->load(".entry rows(\n").value();
  EXPECT_EQ(counts.of("fake_links"), links);
  std::vector<std::string> titles;
  for (const auto& each : second.cache->disk()->list()) titles.push_back(each.title);
  std::sort(titles.begin(), titles.end());
  EXPECT_EQ(titles,
            (std::vector<std::string>{"cubin columns, sm_90", "cubin rows, sm_90", "verdict is linked code as good?"}));
}

TEST_F(CudaModules, WhereLinkedCodeIsWorsePtxIsLoadedAsItIs) {
  std::string library = fake("-DLINKED_MORE=5");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  FakeCounts counts(library);
  for (int round = 0; round < 2; ++round) {
    Process each = process(library);
    Module module = each.device->load("text").value();
    EXPECT_FALSE(each.device->modules().linked_is_as_good());
    EXPECT_EQ(counts.of("fake_links"), 1);  // the probe's; its verdict is kept
    Function function = each.device->function(module, "rows").value();
    EXPECT_EQ(each.device->function_facts(function).value().registers, 104);
    EXPECT_EQ(each.device->load("text").value().get(), module.get());
    EXPECT_EQ(counts.of("fake_loads"), 3 + round);  // the probe's two, then one a process
    std::string titles;
    for (const auto& entry : each.cache->disk()->list()) titles += entry.title + "\n";
    EXPECT_NE(titles.find("compiled by the driver: cubin module, sm_90"), std::string::npos) << titles;
  }
}

// Whoever asks while the driver compiles waits for it. A process that has used CUDA may not fork, so these are threads,
// each with caches and a driver of its own; they meet on disk alone.
TEST_F(CudaModules, fault_17_the_driver_compiles_once_for_many) {
  std::string library = fake("-DLINKED_MORE=5 -DSLOW='\"" + (folder / "compiled").string() + "\"'");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  ASSERT_FALSE(process(library).device->modules().linked_is_as_good());
  std::vector<Process> processes;
  for (int k = 0; k < 16; ++k) processes.push_back(process(library));
  std::vector<std::thread> threads;
  std::atomic<int> loaded = 0;
  for (Process& each : processes) threads.emplace_back([&] { loaded += each.device->load("text").has_value(); });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(loaded, 16);
  EXPECT_EQ(std::filesystem::file_size(folder / "compiled"), 1u);
}

TEST_F(CudaModules, WithoutADiskNothingIsLinked) {
  std::string library = fake("");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  FakeCounts counts(library);
  Process only = process(library, false);
  Module module = only.device->load("text").value();
  EXPECT_EQ(counts.of("fake_links"), 0);
  EXPECT_EQ(counts.of("fake_loads"), 1);
}

TEST_F(CudaModules, OtherRowsShareTheModule) {
  std::string library = fake("");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  FakeCounts counts(library);
  Process only = process(library);
  Program source = parse("p(x[i,j], gamma[j]) -> (y[i,j])\n  y = x * rsqrt(mean(x * x)) * gamma\n").value();
  Program backward = differentiate(source).value();
  Binding binding;
  for (const Operand& each : backward.operands) binding.types[each.name] = Type::F32;
  for (const Output& each : backward.results) binding.types[each.name] = Type::F32;
  Program program = prepare(backward, binding).value().expanded;
  Machine machine{.simd = false, .shared_bytes = 200 << 10, .clusters = true, .processors = 132};
  auto executable = [&](std::int64_t rows, std::int64_t columns) {
    Config config = choose_config(program, machine, {.rows = rows, .columns = columns, .alignment = 8});
    return CudaExecutable::create(*only.device, program, config).value();
  };
  auto first = executable(1, 4096);
  int links = counts.of("fake_links"), loads = counts.of("fake_loads");
  auto second = executable(7, 4096), third = executable(std::int64_t{1} << 20, 4096);
  EXPECT_EQ(counts.of("fake_links"), links);
  EXPECT_EQ(counts.of("fake_loads"), loads);
  auto other = executable(7, 2048);
  EXPECT_EQ(counts.of("fake_links"), links + 1);
}

// The hash of the entry fits, but the driver does not take it.
TEST_F(CudaModules, fault_18_an_entry_that_the_driver_refuses_is_made_again) {
  std::string library = fake("");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  Process first = process(library);
  auto key = CacheKey("cubin", "kernel").with("source", "text");
  first.cache->get_or_make(key, [] { return Result<std::string>("\177ELF old"); }).value();
  Process second = process(library);
  auto whole = [](const std::string& artifact) -> Result<std::string> { return artifact; };
  auto made = second.device->modules().load_made(
      key, [] { return Result<std::string>("\177ELF new"); }, whole);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->from, Cached::From::Made);
  EXPECT_EQ(*made->artifact, "\177ELF new");
  auto refused = second.device->modules().load_made(
      CacheKey("cubin", "other"), [] { return Result<std::string>("\177ELF old"); }, whole);
  EXPECT_EQ(refused.error().message, "cuModuleLoadDataEx: CUDA_ERROR_INVALID_IMAGE (200): what it means");
}

TEST_F(CudaModules, TheLinkersLogIsInTheError) {
  std::string library = fake("");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  FakeCounts counts(library);
  Process only = process(library);
  int live = counts.of("fake_live");
  EXPECT_EQ(only.device->load("bad").error().message,
            "cuLinkAddData_v2: CUDA_ERROR_INVALID_PTX (218): what it means\n"
            "ptxas application ptx input, line 7; fatal   : Parsing error");
  Error newer = only.device->load(".version 99.0\ntoo new").error();
  EXPECT_EQ(newer.code, Code::Unsupported);
  EXPECT_EQ(newer.message,
            "cuLinkAddData_v2: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): what it means\n"
            "the driver is that of CUDA 12.8 and knows no later PTX; the module begins .version 99.0");
  EXPECT_EQ(counts.of("fake_live"), live);
  EXPECT_EQ(only.cache->disk()->list().size(), 1u);  // the probe's verdict: no error is kept
}

}  // namespace
}  // namespace trireme::cuda
