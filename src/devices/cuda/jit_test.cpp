// CUDA C++ by NVRTC: to PTX and cubin without a GPU, launched on the fake driver, and on a GPU where there is one.
#include "trireme/jit.hpp"

#include <fstream>
#include <thread>

#include "devices/cuda/fake_driver_for_test.hpp"
#include "devices/cuda/jit_kernel.hpp"
#include "support/environment_for_test.hpp"
#include "trireme/ptx.hpp"

namespace trireme::cuda {
namespace {

constexpr const char* source = R"(
template <typename T>
__global__ void scale(T* x, float factor, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = x[i] * factor;
}
namespace mine { __global__ void nothing() {} }
__device__ int helper(int x) { return x; }
extern "C" __global__ void plain(float* x, double y, char z) {
  __shared__ float staged[24];
  staged[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = staged[23 - threadIdx.x] + y + z;
}
)";

class Jit : public FakeDriver {
 protected:
  void SetUp() override {
    if (Result<const Nvrtc*> there = Nvrtc::open(""); !there) GTEST_SKIP() << there.error().message;
  }
  JitRequest request(const std::string& name, const std::string& arch = "sm_90") const { return {source, name, arch}; }
  KernelCache::Options disk() const { return {.folder = (folder / "cache").string()}; }
};

TEST_F(Jit, SourceToPtxAndCubinWithoutAGpu) {
  jit::Compiled plain = compile_in(cache, request("plain")).value();
  EXPECT_EQ(plain.name, "plain");
  EXPECT_EQ(plain.arch, "sm_90");
  EXPECT_NE(plain.ptx.find(".visible .entry plain("), std::string::npos);
  EXPECT_TRUE(plain.cubin.starts_with("\177ELF"));
  EXPECT_EQ(plain.log, "");
  EXPECT_GT(plain.facts.registers, 4);
  EXPECT_EQ(plain.facts.local_bytes, 0);
  EXPECT_EQ(plain.facts.spill_stores, 0);
  EXPECT_EQ(plain.facts.spill_loads, 0);
  EXPECT_EQ(plain.facts.shared_bytes, 96);
  EXPECT_EQ(plain.facts.parameter_bytes, (std::vector<int>{8, 8, 1}));
  EXPECT_EQ(jit::describe(plain),
            "plain for sm_90: " + std::to_string(plain.facts.registers) +
                " registers, 0 bytes of local memory (spills: 0 bytes stored, 0 loaded), 96 bytes of shared memory; "
                "parameters of 8, 8, 1 bytes");

  // Names as C++ has them; an architecture that is not real gives PTX alone.
  jit::Compiled scale = compile_in(cache, request("scale<float>", "compute_80")).value();
  EXPECT_EQ(scale.name, "_Z5scaleIfEvPT_fi");
  EXPECT_EQ(scale.cubin, "");
  EXPECT_NE(scale.ptx.find(".entry _Z5scaleIfEvPT_fi("), std::string::npos);
  EXPECT_EQ(jit::describe(scale), "_Z5scaleIfEvPT_fi for compute_80: PTX, which the driver compiles");
  EXPECT_EQ(compile_in(cache, request("mine::nothing", "compute_80")).value().name, "_ZN4mine7nothingEv");
}

TEST_F(Jit, ErrorsSayWhereAndWhat) {
  auto error_of = [&](const std::string& text, const std::string& name, std::vector<std::string> flags = {},
                      const std::string& arch = "sm_90") {
    JitRequest wrong{text, name, arch, {.flags = std::move(flags), .file = "mine.cu"}};
    return compile_in(cache, wrong).error();
  };
  Error undefined = error_of("extern \"C\" __global__ void k(float* x) {\n  x[0] = y;\n}\n", "k");
  EXPECT_EQ(undefined.code, Code::InvalidProgram);
  EXPECT_TRUE(undefined.message.starts_with("mine.cu does not compile for sm_90 by NVRTC ")) << undefined.message;
  EXPECT_NE(undefined.message.find("\nmine.cu(2): error: identifier \"y\" is undefined"), std::string::npos)
      << undefined.message;

  Error unnamed = error_of("__global__ void k() {}\n", "other");
  EXPECT_EQ(unnamed.code, Code::InvalidArgument);
  EXPECT_TRUE(unnamed.message.starts_with("mine.cu has no kernel 'other'; ")) << unnamed.message;
  Error helper = error_of("extern \"C\" __device__ int helper() { return 1; }\n__global__ void k() {}\n", "helper");
  EXPECT_EQ(helper.code, Code::InvalidArgument) << helper.message;
  Error flag = error_of(source, "plain", {"--no-such-flag"});
  EXPECT_EQ(flag.code, Code::InvalidArgument);
  EXPECT_NE(flag.message.find("no-such-flag"), std::string::npos) << flag.message;
  Error arch = error_of(source, "plain", {}, "sm_1");
  EXPECT_EQ(arch.code, Code::InvalidArgument);
  EXPECT_NE(arch.message.find("-arch"), std::string::npos) << arch.message;
}

TEST_F(Jit, KeysKnowEverythingTheCodeDependsOn) {
  const Nvrtc& rtc = *Nvrtc::open("").value();
  auto hash = [&](auto change) {
    JitRequest each{"#include \"a.h\"\n__global__ void k() {}\n",
                    "k",
                    "sm_90",
                    {.flags = {"-I" + folder.string()}, .file = (folder / "k.cu").string()}};
    change(each);
    return hex(jit_key(rtc, each).value().key.hash());
  };
  auto write = [&](const std::string& name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("a.h", "#include <b.h>\n");
  write("b.h", "// one\n#include \"a.h\"\n");
  auto same = [](JitRequest&) {};
  const std::string base = hash(same);
  EXPECT_EQ(hash(same), base);
  EXPECT_NE(hash([](JitRequest& r) { r.source += " "; }), base);
  EXPECT_NE(hash([](JitRequest& r) { r.name = "other"; }), base);
  EXPECT_NE(hash([](JitRequest& r) { r.arch = "sm_80"; }), base);
  EXPECT_NE(hash([](JitRequest& r) { r.options.flags.push_back("-DX"); }), base);
  EXPECT_NE(hash([](JitRequest& r) { r.options.headers.push_back({"c.h", ""}); }), base);
  write("b.h", "// two\n#include \"a.h\"\n");  // included by what is included
  EXPECT_NE(hash(same), base);
}

TEST_F(Jit, CompiledOnceByThreadsAndProcesses) {
  std::vector<std::thread> threads;
  std::atomic<int> made = 0, right = 0;
  KernelCache first(disk());
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&] {
      Result<jit::Compiled> got = compile_in(first, request("plain"));
      if (got) ++right, made += !got->from_cache;
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(right, 8);
  EXPECT_EQ(made, 1);
  KernelCache second(disk());
  jit::Compiled again = compile_in(second, request("plain")).value();
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.facts.parameter_bytes, (std::vector<int>{8, 8, 1}));
  EXPECT_TRUE(second.disk()->list().at(0).title.starts_with("cuda plain, sm_90, NVRTC "));
}

TEST_F(Jit, LaunchesAreChecked) {
  struct Case {
    std::string flags;
    std::vector<int> sizes;
  };
  // The driver tells the sizes from 12.4 on; before, the cubin does. The driver's word counts: here it says 8, 4.
  for (const Case& each : {Case{"", {8, 4, 4}}, Case{"-DPARAMETERS=8,4", {8, 4}}}) {
    std::string library = fake(each.flags);
    if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
    KernelCache kept(disk());
    auto driver = Driver::load(library.c_str(), kept).value();
    const Device& device = *driver->device(0).value();
    jit::Options options;
    jit::Kernel kernel = kernel_from_source(device, source, "scale<float>", options).value();
    EXPECT_EQ(kernel.facts().parameter_bytes, each.sizes);
    EXPECT_EQ(kernel.facts().registers, 104);  // the driver's word again
    unsigned seen[11] = {};
    float* x = reinterpret_cast<float*>(seen);
    if (each.sizes.size() == 3) {
      ASSERT_TRUE(kernel.launch({7, 2}, {16, 4}, 512, nullptr, x, 2.0f, 100));
      EXPECT_EQ((std::vector<unsigned>(seen, seen + 7)), (std::vector<unsigned>{7, 2, 1, 16, 4, 1, 512}));
      EXPECT_TRUE(kernel.launch({1}, {32}, 60 << 10, nullptr, x, 2.0f, 100));
      EXPECT_EQ(kernel.launch({1}, {32}, 0, nullptr, x, 2.0f).error().message,
                "scale<float>: 2 arguments are given, and it takes 3: of 8, 4, 4 bytes");
      EXPECT_EQ(kernel.launch({1}, {32}, 0, nullptr, x, 2.0, 100).error().message,
                "scale<float>: argument 2 is of 8 bytes, and its parameter of 4; all of them: of 8, 4, 4 bytes");
      EXPECT_EQ(kernel.launch({0}, {32}, 0, nullptr, x, 2.0f, 100).error().message,
                "scale<float>: a grid of 0 x 1 x 1 blocks; from 1 to 2147483647 x 65535 x 65535 go");
      EXPECT_EQ(kernel.launch({1}, {32, 32}, 0, nullptr, x, 2.0f, 100).error().message,
                "scale<float>: a block of 32 x 32 x 1 threads; from 1 to 100 in all go, and 64 along z");
      EXPECT_TRUE(kernel.describe().find("(sm_90), NVRTC ") != std::string::npos) << kernel.describe();
      EXPECT_TRUE(kernel.describe().find("threads 20 run at once") != std::string::npos) << kernel.describe();
    } else {
      EXPECT_TRUE(kernel.launch({1}, {32}, 0, nullptr, x, 2.0f));
      EXPECT_FALSE(kernel.launch({1}, {32}, 0, nullptr, x, 2.0f, 100));
      EXPECT_TRUE(kernel.describe().find("from disk") != std::string::npos) << kernel.describe();
    }
  }
}

// Needs no NVRTC.
class JitWithout : public FakeDriver {};

TEST_F(JitWithout, PtxAndTheBuilder) {
  std::string library = fake("-DPARAMETERS=8");
  if (library.empty()) GTEST_SKIP() << "no C compiler to build the fake driver";
  auto driver = Driver::load(library.c_str(), cache).value();
  const Device& device = *driver->device(0).value();
  ptx::Module module("sm_80");
  module.kernel("first").param<ptx::U64>("x");
  module.kernel("rows").param<ptx::U64>("x");
  std::string text = module.text().value();
  jit::Kernel kernel = kernel_from_ptx(device, text, "rows").value();
  unsigned seen[11] = {};
  unsigned* out = seen;
  EXPECT_TRUE(kernel.launch({3}, {64}, 0, nullptr, out));
  EXPECT_EQ(seen[0], 3u);
  EXPECT_EQ(kernel_from_ptx(device, text, "third").error().message,
            "the PTX has no kernel 'third'; it has first, rows");
  EXPECT_EQ(kernel_from_ptx(device, "", "third").error().message, "the PTX has no kernel 'third'; it has none");
}

TEST_F(JitWithout, AMissingNvrtcIsNamedAndHowToGetIt) {
  Error named = Nvrtc::open("/no/such/libnvrtc.so").error();
  EXPECT_EQ(named.code, Code::Unsupported);
  EXPECT_TRUE(named.message.starts_with("NVRTC, as the option names it, cannot be used: /no/such/libnvrtc.so: "))
      << named.message;
  EXPECT_EQ(
      Nvrtc::open("libm.so.6").error().message,
      "NVRTC, as the option names it, cannot be used: libm.so.6 has no nvrtcVersion; NVRTC 11.2 or later is needed");
  if (Result<const Nvrtc*> none = Nvrtc::open(""); !none) {
    EXPECT_NE(none.error().message.find("pip install nvidia-cuda-nvrtc"), std::string::npos);
  }
}

TEST_F(JitWithout, fault_32_NvrtcIsLookedForInToolkitsAndWheels) {
  auto place = [&](const std::string& path) {
    std::filesystem::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << "";
    return (folder / path).string();
  };
  const std::string toolkit = place("cuda/lib64/libnvrtc.so.12"),
                    older = place("venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
                    newer = place("venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.13"),
                    conda = place("conda/lib/libnvrtc.so.12");
  place("venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12");
  Environment home("CUDA_HOME", folder / "cuda"), venv("VIRTUAL_ENV", folder / "venv"),
      prefix("CONDA_PREFIX", folder / "conda");
  std::vector<std::string> found = nvrtc_candidates();
  std::erase_if(found, [&](const std::string& path) { return !path.starts_with(folder.string()); });
  EXPECT_EQ(found, (std::vector<std::string>{toolkit, newer, older, conda}));
}

TEST(JitOnAGpu, ComputesWhatTheSourceSays) {
  if (Result<const Driver*> driver = Driver::instance(); !driver) GTEST_SKIP() << "no GPU: " << driver.error().message;
  const Device& device = *Driver::instance().value()->device(0).value();
  std::vector<float> host(1000);
  for (std::size_t k = 0; k < host.size(); ++k) host[k] = static_cast<float>(k);
  Memory memory = device.allocate(4000).value();
  Stream stream = device.stream().value();
  auto run = [&](const jit::Kernel& kernel) {
    device.copy(memory.get(), host.data(), 4000).value();
    float* x = static_cast<float*>(memory.get());
    kernel.launch({4}, {256}, 0, stream.get(), x, 2.0f, 999).value();
    std::vector<float> result(1000);
    device.synchronize(stream.get()).value();
    device.copy(result.data(), memory.get(), 4000).value();
    for (std::size_t k = 0; k < 1000; ++k) ASSERT_EQ(result[k], k < 999 ? host[k] * 2 : host[k]) << k;
    EXPECT_EQ(kernel.facts().parameter_bytes, (std::vector<int>{8, 4, 4}));
    EXPECT_FALSE(kernel.launch({4}, {256}, 0, stream.get(), x, 2.0f));
    EXPECT_FALSE(kernel.launch({4}, {256}, 0, stream.get(), x, 2.0, 999));
    std::printf("%s\n", kernel.describe().c_str());
  };
  if (Result<const Nvrtc*> nvrtc = Nvrtc::open(""); !nvrtc) GTEST_SKIP() << nvrtc.error().message;
  jit::Options options;
  run(jit::compile_cached(source, "scale<float>", options).value());
  run(jit::compile_cached(source, "scale<float>", options).value());
  jit::Compiled compiled = jit::compile(source, "scale<float>", options).value();
  Result<jit::Kernel> from_text = jit::from_ptx(compiled.ptx, compiled.name);
  if (from_text) run(*from_text);
  else  // NVRTC may be newer than the driver
    EXPECT_EQ(from_text.error().code, Code::Unsupported) << from_text.error().message;
  // What the cubin says without a GPU is what the driver says with it.
  jit::Kernel plain = jit::compile_cached(source, "plain", options).value();
  jit::Facts facts = jit::compile(source, "plain", options).value().facts;
  EXPECT_EQ(facts.registers, plain.facts().registers);
  EXPECT_EQ(facts.local_bytes, plain.facts().local_bytes);
  EXPECT_EQ(facts.shared_bytes, plain.facts().shared_bytes);
  EXPECT_EQ(facts.parameter_bytes, plain.facts().parameter_bytes);
}

}  // namespace
}  // namespace trireme::cuda
