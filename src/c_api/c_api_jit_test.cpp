// Kernels of one's own through the C ABI: compiled by NVRTC without a GPU, launched on the fake driver.
#include <gtest/gtest.h>
#include <trireme.h>

#include <cstring>

#include "devices/cuda/fake_process_for_test.hpp"

namespace trireme {
namespace {

constexpr char source[] =
    "#include <by.h>\n"
    "template <typename T> __global__ void scale(T* x, float factor, int count) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) x[i] = x[i] * factor + BY;\n"
    "}\n";
constexpr char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry rows(.param .u64 x)\n{\nret;\n}\n";

trireme_jit_options options_for(const char* arch) {
  trireme_jit_options options = {};
  options.struct_size = sizeof options;
  options.arch = arch;
  return options;
}

trireme_jit_launch launch_of(int64_t blocks, int64_t threads) {
  trireme_jit_launch launch = {};
  launch.struct_size = sizeof launch;
  launch.grid[0] = blocks;
  launch.block[0] = threads;
  return launch;
}

bool says(const char* part) { return std::strstr(trireme_last_error(), part) != nullptr; }

TEST(CApiJit, SourceToCodeWithoutAGpu) {
  trireme_jit_options options = options_for("sm_90");
  const trireme_jit_header header = {"by.h", "#define BY MORE\n"};
  const char* flags[] = {"-DMORE=2", "--use_fast_math"};
  options.headers = &header, options.header_count = 1;
  options.flags = flags, options.flag_count = 2;
  options.file = "mine.cu";
  trireme_jit_code* code = nullptr;
  const trireme_status made = trireme_jit_compile(source, sizeof source - 1, "scale<float>", &options, &code);
  if (made == TRIREME_UNSUPPORTED) GTEST_SKIP() << trireme_last_error();
  ASSERT_EQ(made, TRIREME_OK) << trireme_last_error();
  trireme_jit_compiled compiled = {};
  compiled.struct_size = sizeof compiled;
  ASSERT_EQ(trireme_jit_code_compiled(code, &compiled), TRIREME_OK);
  EXPECT_STREQ(compiled.name, "_Z5scaleIfEvPT_fi");
  EXPECT_STREQ(compiled.arch, "sm_90");
  EXPECT_TRUE(std::strstr(compiled.ptx, ".entry _Z5scaleIfEvPT_fi("));
  ASSERT_GT(compiled.cubin_bytes, 4u);
  EXPECT_EQ(std::memcmp(compiled.cubin, "\177ELF", 4), 0);
  EXPECT_STREQ(compiled.log, "");
  EXPECT_STREQ(compiled.not_kept, "");
  trireme_jit_facts facts = {};
  facts.struct_size = sizeof facts;
  ASSERT_EQ(trireme_jit_code_facts(code, &facts), TRIREME_OK);
  EXPECT_GT(facts.registers, 0);
  ASSERT_EQ(facts.parameter_count, 3);
  EXPECT_EQ(facts.parameter_bytes[0], 8);
  EXPECT_EQ(facts.parameter_bytes[1], 4);
  const char* text = nullptr;
  ASSERT_EQ(trireme_jit_code_describe(code, &text), TRIREME_OK);
  EXPECT_TRUE(std::strstr(text, "for sm_90: ")) << text;

  trireme_jit_code* none = nullptr;
  EXPECT_EQ(trireme_jit_compile("__global__ void k() { y = 1; }", 30, "k", &options, &none), TRIREME_INVALID_PROGRAM);
  EXPECT_TRUE(says("mine.cu does not compile for sm_90 by NVRTC ")) << trireme_last_error();
  EXPECT_EQ(trireme_jit_compile(source, sizeof source - 1, "other", &options, &none), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(trireme_jit_code_destroy(code), TRIREME_OK);
  EXPECT_EQ(trireme_jit_code_destroy(code), TRIREME_INVALID_ARGUMENT);
  EXPECT_EQ(trireme_jit_code_facts(code, &facts), TRIREME_INVALID_ARGUMENT);
}

TEST(CApiJit, fault_29_MisuseIsRefused) {
  trireme_jit_code* code = nullptr;
  trireme_jit_kernel* kernel = nullptr;
  trireme_jit_options options = options_for("sm_90");
  auto refused = [](trireme_status got, const char* part) {
    EXPECT_EQ(got, TRIREME_INVALID_ARGUMENT);
    EXPECT_TRUE(says(part)) << trireme_last_error();
  };
  refused(trireme_jit_compile(nullptr, 5, "k", &options, &code), "text is null");
  refused(trireme_jit_compile("", 0, nullptr, &options, &code), "name is null");
  refused(trireme_jit_compile("", 0, "k", &options, nullptr), "code is null");
  options.flag_count = 1;
  refused(trireme_jit_compile("", 0, "k", &options, &code), "flags is null");
  const trireme_jit_header header = {"a.h", nullptr};
  options = options_for("sm_90");
  options.headers = &header, options.header_count = 1;
  refused(trireme_jit_compile("", 0, "k", &options, &code), "a text in headers is null");
  options.struct_size = 8;
  refused(trireme_jit_compile("", 0, "k", &options, &code), "options.struct_size is 8");
  refused(trireme_jit_from_ptx(ptx, sizeof ptx - 1, "rows", nullptr, nullptr), "kernel is null");
  refused(trireme_jit_kernel_describe(nullptr, nullptr), "kernel: a null handle");
  EXPECT_EQ(trireme_jit_kernel_destroy(nullptr), TRIREME_OK);
  EXPECT_EQ(kernel, nullptr);
}

class CApiJitOnAFake : public FakeProcess {};

TEST_F(CApiJitOnAFake, LaunchesAreChecked) {
  run("-DPARAMETERS=8,4", [](const Fake&) {
    trireme_jit_kernel* kernel = nullptr;
    expect(trireme_jit_from_ptx(ptx, sizeof ptx - 1, "rows", nullptr, &kernel) == TRIREME_OK, trireme_last_error());
    trireme_jit_facts facts = {};
    facts.struct_size = sizeof facts;
    expect(trireme_jit_kernel_facts(kernel, &facts) == TRIREME_OK && facts.parameter_count == 2 &&
               facts.parameter_bytes[1] == 4 && facts.spill_loads == -1,
           "facts");
    const char* text = nullptr;
    expect(trireme_jit_kernel_describe(kernel, &text) == TRIREME_OK && std::strstr(text, "rows on Fake GPU (sm_90)"),
           text ? text : trireme_last_error());
    int32_t blocks = 0;
    expect(trireme_jit_kernel_blocks(kernel, 64, 0, &blocks) == TRIREME_OK && blocks == 32, "blocks");

    unsigned seen[11] = {};
    void* x = seen;
    float factor = 2;
    const trireme_jit_argument arguments[] = {{&x, sizeof x}, {&factor, sizeof factor}};
    trireme_jit_launch launch = launch_of(7, 16);
    launch.grid[1] = 2, launch.shared_bytes = 512;
    expect(trireme_jit_kernel_launch(kernel, &launch, arguments, 2) == TRIREME_OK, trireme_last_error());
    expect(std::vector(seen, seen + 7) == std::vector<unsigned>{7, 2, 1, 16, 1, 1, 512}, "the launch as it was said");
    seen[0] = 0;

    auto refused = [](trireme_status got, const char* part) {
      expect(got == TRIREME_INVALID_ARGUMENT && says(part), std::string(trireme_last_error()) + "\n  wanted: " + part);
    };
    refused(trireme_jit_kernel_launch(kernel, &launch, arguments, 1), "1 arguments are given, and it takes 2");
    const trireme_jit_argument wide[] = {{&x, sizeof x}, {&x, sizeof x}}, null[] = {{&x, sizeof x}, {nullptr, 4}};
    refused(trireme_jit_kernel_launch(kernel, &launch, wide, 2), "argument 2 is of 8 bytes, and its parameter of 4");
    refused(trireme_jit_kernel_launch(kernel, &launch, null, 2), "an argument's data is null");
    refused(trireme_jit_kernel_launch(kernel, &launch, nullptr, 2), "arguments is null");
    refused(trireme_jit_kernel_launch(kernel, nullptr, arguments, 2), "launch is null");
    launch = launch_of(0, 16);
    refused(trireme_jit_kernel_launch(kernel, &launch, arguments, 2), "a grid of 0 x 1 x 1 blocks");
    refused(trireme_jit_from_ptx(ptx, sizeof ptx - 1, "columns", nullptr, &kernel), "no kernel 'columns'; it has rows");
    expect(seen[0] == 0, "nothing that is refused is launched");
    expect(trireme_jit_kernel_destroy(kernel) == TRIREME_OK, "destroyed");
    refused(trireme_jit_kernel_launch(kernel, &launch, arguments, 2), "kernel: the handle was destroyed");

    trireme_jit_options second = options_for(nullptr);
    second.device = 1;
    expect(trireme_jit_from_ptx(ptx, sizeof ptx - 1, "rows", &second, &kernel) == TRIREME_OK, trireme_last_error());
    second.device = 7;
    expect(trireme_jit_from_ptx(ptx, sizeof ptx - 1, "rows", &second, &kernel) == TRIREME_NO_DEVICE, "no such GPU");
  });
}

// CUDA C++ all the way. NVRTC opens libcuda.so.1 too while it compiles, and wants more of it than the fake has, so it
// does that before; what is loaded comes from the cache.
TEST_F(CApiJitOnAFake, CompiledCodeIsLoaded) {
  constexpr char text[] = "__global__ void k(float* x, int n) { if (n) *x = n; }";
  const trireme_jit_options options = options_for("sm_90");
  trireme_jit_code* code = nullptr;
  const trireme_status made = trireme_jit_compile(text, sizeof text - 1, "k", &options, &code);
  if (made == TRIREME_UNSUPPORTED) GTEST_SKIP() << trireme_last_error();
  ASSERT_EQ(made, TRIREME_OK) << trireme_last_error();
  run("", [&](const Fake&) {
    trireme_jit_kernel* kernel = nullptr;
    expect(trireme_jit_compile_cached(text, sizeof text - 1, "k", nullptr, &kernel) == TRIREME_OK,
           trireme_last_error());
    unsigned seen[11] = {};
    void* x = seen;
    int32_t n = 3;
    const trireme_jit_argument arguments[] = {{&x, sizeof x}, {&n, sizeof n}};
    trireme_jit_launch launch = launch_of(1, 32);
    expect(trireme_jit_kernel_launch(kernel, &launch, arguments, 2) == TRIREME_OK, trireme_last_error());
    expect(seen[0] == 1 && seen[3] == 32, "launched");
    expect(trireme_jit_kernel_launch(kernel, &launch, arguments, 1) == TRIREME_INVALID_ARGUMENT, "sizes of the cubin");
  });
}

}  // namespace
}  // namespace trireme
