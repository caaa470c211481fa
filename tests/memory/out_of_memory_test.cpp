// One allocation of a first use fails, or all from one on: calls that promise a Result say OutOfMemory, and the process
// goes on working (fault 40). A program of its own, because it takes the place of operator new, and of the malloc that
// asmjit calls (--wrap). Each failure is tried in a process that has not used the library yet.
//
// LONG=1 fails every allocation in turn; otherwise every so many-th. ALLOCATION=1907 (or 1907+, for those behind it as
// well) fails that one in this process, for a debugger.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <trireme.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>

#include "devices/wasm/doubler_for_test.hpp"
#include "support/hash.hpp"
#include "trireme/builder.hpp"
#include "trireme/jit.hpp"
#include "trireme/ops.hpp"
#include "trireme/plan.hpp"
#include "trireme/wasm_host.hpp"

namespace {

// Allocations until one fails; the process counts them while `armed`.
std::atomic<bool> armed = false;
std::atomic<long> left = 0, failures = 0;
bool from_there_on = false;

bool fails_now() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long before = left.fetch_sub(1);
  const bool fails = before == 1 || (from_there_on && before < 1);
  failures += fails;
  return fails;
}

}  // namespace

extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
void* __wrap_malloc(size_t bytes) { return fails_now() ? nullptr : __real_malloc(bytes); }
void* __wrap_calloc(size_t count, size_t bytes) { return fails_now() ? nullptr : __real_calloc(count, bytes); }
void* __wrap_realloc(void* memory, size_t bytes) { return fails_now() ? nullptr : __real_realloc(memory, bytes); }
}

void* operator new(std::size_t bytes) {
  void* memory = fails_now() ? nullptr : __real_malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  void* memory = fails_now() ? nullptr : std::aligned_alloc(to, (bytes + to - 1) / to * to);
  if (!memory) throw std::bad_alloc();
  return memory;
}
// Not inline: g++ 12 takes free for another family than the operator new above.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace trireme {
namespace {

// What the test itself allocates does not fail.
template <typename Body>
auto undisturbed(Body&& body) {
  const bool before = armed.exchange(false);
  auto result = body();
  armed = before;
  return result;
}
// Calls that promise no Result throw, as the standard library does.
template <typename Body>
auto as_result(Body&& body) -> Result<decltype(body())> {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{Code::OutOfMemory, "thrown"};
  }
}

constexpr std::int64_t rows = 48, columns = 300;

struct Arrays {
  std::map<std::string, std::vector<float>> memory;

  explicit Arrays(std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
    for (auto [name, count] : sizes) {
      std::vector<float>& values = memory[name];
      values.resize(static_cast<std::size_t>(count));
      for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>((k * 37) % 101) / 50.0f - 1.0f;
    }
  }
  std::string digest(std::initializer_list<const char*> results) const {
    Hasher hasher;
    for (const char* name : results) hasher.add(memory.at(name).data(), memory.at(name).size() * sizeof(float));
    return hex(hasher.value());
  }
};

// ---- first uses; each gives the digest of what it computed ----

Result<std::string> run_plan(const Device& device, const RowProgram& program, Arrays& arrays,
                             std::initializer_list<const char*> results) {
  const PlanOptions options = undisturbed([&] {
    return PlanOptions{.program = program, .shape = {rows, columns}, .threads = 2};
  });
  TRIREME_TRY(plan, Plan::create(device, options));
  TRIREME_TRY(args, as_result([&] { return plan.args(); }));
  for (auto& [name, values] : arrays.memory) {
    TRIREME_TRY(slot, args.slot(name));
    slot = View{values.data(), Type::F32};
  }
  TRIREME_CHECK(plan.check(args));
  TRIREME_TRY(workspace, plan.make_workspace());
  TRIREME_CHECK(plan.run(args, {}, workspace.span()));
  return undisturbed([&] { return arrays.digest(results); });
}

Arrays backward_arrays() {
  return undisturbed([] {
    return Arrays{{"dy", rows * columns}, {"x", rows * columns},  {"gamma", columns},
                  {"rstd", rows},         {"dx", rows * columns}, {"dgamma", columns}};
  });
}

Result<std::string> plan_on_the_cpu() {
  TRIREME_TRY(device, Device::cpu());
  TRIREME_TRY(forward, RowProgram::named("rms_norm"));
  TRIREME_TRY(backward, forward.differentiate());
  Arrays arrays = backward_arrays();
  return run_plan(device, backward, arrays, {"dx", "dgamma"});
}

Result<std::string> plan_of_the_reference() {
  TRIREME_TRY(forward, RowProgram::named("rms_norm"));
  TRIREME_TRY(backward, forward.differentiate());
  Arrays arrays = backward_arrays();
  TRIREME_TRY(device, as_result([] { return Device::reference(); }));
  return run_plan(device, backward, arrays, {"dx", "dgamma"});
}

Result<std::string> one_call() {
  Arrays arrays = undisturbed([] { return Arrays{{"x", rows * columns}, {"y", rows * columns}}; });
  const std::map<std::string, View> views = undisturbed([&] {
    return std::map<std::string, View>{{"x", View{arrays.memory["x"].data(), Type::F32, {rows, columns}}},
                                       {"y", View{arrays.memory["y"].data(), Type::F32, {rows, columns}}}};
  });
  TRIREME_CHECK(run("softmax", views));
  return undisturbed([&] { return arrays.digest({"y"}); });
}

Result<std::string> text_and_builder() {
  TRIREME_TRY(parsed,
              RowProgram::parse("mine(x[i,j], w[j] = 1, c = 2) -> (y[i,j])\n    y = exp(x * w) / (c + sum(x))\n"));
  TRIREME_TRY(backward, parsed.differentiate());
  const ProgramBuilder builder = undisturbed([] {
    ProgramBuilder writing("built");
    Expr x = writing.operand("x[i,j]");
    writing.result("y[i,j]", exp(x) * mean(x));
    return writing;
  });
  TRIREME_TRY(built, builder.build());
  return undisturbed([&] { return parsed.print() + backward.print() + built.print(); });
}

Result<std::string> c_abi() {
  auto wrong = [](trireme_status status) {
    return undisturbed([&] { return Error{static_cast<Code>(status - 1), trireme_last_error()}; });
  };
  trireme_program* program = nullptr;
  trireme_plan* plan = nullptr;
  trireme_args* args = nullptr;
  trireme_plan_options options = {};
  const int64_t shape[] = {rows, columns};
  options.struct_size = sizeof options, options.shape = shape, options.rank = 2, options.threads = 2;
  Arrays arrays = undisturbed([] {
    return Arrays{{"x", rows * columns}, {"gamma", columns}, {"y", rows * columns}, {"rstd", rows}};
  });
  trireme_status status = trireme_program_named("rms_norm", &program);
  if (status == TRIREME_OK) status = trireme_plan_create("cpu", program, &options, &plan);
  if (status == TRIREME_OK) status = trireme_args_create(plan, &args);
  for (auto& [name, values] : arrays.memory) {
    trireme_view view = {};
    view.struct_size = sizeof view, view.data = values.data(), view.type = TRIREME_F32;
    view.bytes = TRIREME_UNKNOWN_BYTES;
    if (status == TRIREME_OK) status = trireme_args_set(args, name.c_str(), &view);
  }
  if (status == TRIREME_OK) status = trireme_plan_run(plan, args, nullptr, nullptr, 0);
  if (status != TRIREME_OK) return wrong(status);
  trireme_args_destroy(args), trireme_plan_destroy(plan), trireme_program_destroy(program);
  return undisturbed([&] { return arrays.digest({"y", "rstd"}); });
}

const std::vector<std::uint8_t>& module_bytes() {
  static const auto made = doubler::module_of();
  return made;
}

Result<std::string> wasm_kernel() {
  TRIREME_TRY(host, WasmHost::open());
  TRIREME_TRY(kernel, host.load(module_bytes()));
  const std::array a = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> doubled = {};
  std::array<std::byte, 4> scratch = {};
  const std::array<std::byte, 12> params = {};
  TRIREME_CHECK(kernel.forward({.a = a, .output = doubled, .scratch = scratch, .params = params}));
  return undisturbed([&] { return std::string(reinterpret_cast<const char*>(doubled.data()), doubled.size()); });
}

Result<std::string> jit_compile() {
  const jit::Options options = undisturbed([] { return jit::Options{.arch = "compute_80"}; });
  TRIREME_TRY(compiled, jit::compile("extern \"C\" __global__ void k(int* p) { *p = 3; }\n", "k", options));
  return undisturbed([&] { return compiled.ptx; });
}

// ---- the trial ----

using Use = Result<std::string> (*)();

enum Verdict {
  Fine = 0,
  NeverFailed = 1,
  WrongError = 2,
  WrongResult = 3,
  SecondFailed = 4,
  Threw = 5,
  Hung = 6,
  Died = 7
};
constexpr const char* spelled[] = {"fine",
                                   "never failed",
                                   "the error is not OutOfMemory",
                                   "the result is wrong",
                                   "the next use failed",
                                   "an exception left a call that promises a Result",
                                   "hung",
                                   "died"};

// In this process, which has used nothing yet.
Verdict try_it(Use use, const std::string& want, long at, bool and_on) {
  left = at, from_there_on = and_on, armed = true;
  Result<std::string> first = use();
  armed = false;
  if (!first && first.error().code != Code::OutOfMemory)
    return fprintf(stderr, "%s\n", first.error().message.c_str()), WrongError;
  if (first && *first != want) return WrongResult;
  Result<std::string> second = use();
  if (!second || *second != want)
    return fprintf(stderr, "%s\n", second ? "another result" : second.error().message.c_str()), SecondFailed;
  return failures ? Fine : NeverFailed;
}

Verdict in_a_child(const std::function<Verdict()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    try {
      _exit(work());
    } catch (...) {
      _exit(Threw);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) return static_cast<Verdict>(WEXITSTATUS(status));
  return WTERMSIG(status) == SIGALRM ? Hung : Died;
}

void fail_in_turn(Use use, const std::string& want, long stride) {
  if (const char* only = std::getenv("ALLOCATION")) {
    EXPECT_EQ(try_it(use, want, std::atol(only), std::strchr(only, '+') != nullptr), Fine);
    return;
  }
  const bool all = std::getenv("LONG") != nullptr;
  int wrong = 0;
  for (bool and_on : {false, true})
    for (long at = 1; wrong < 5; at += all ? 1 : stride) {
      const Verdict verdict = in_a_child([&] { return try_it(use, want, at, and_on); });
      if (verdict == NeverFailed) {
        EXPECT_GT(at, 20) << "nothing was counted";
        break;
      }
      EXPECT_EQ(verdict, Fine) << spelled[verdict] << "; rerun with ALLOCATION=" << at << (and_on ? "+" : "");
      wrong += verdict != Fine;
    }
}

class OutOfMemory : public testing::Test {
 protected:
  OutOfMemory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trireme_memory_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    setenv("TRIREME_CACHE", (folder_ + "/cache").c_str(), 1);  // there, so that it is looked into
    std::filesystem::create_directory(folder_ + "/cache");
    std::filesystem::permissions(folder_ + "/cache", std::filesystem::perms::owner_all);
  }
  ~OutOfMemory() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  // What it gives where nothing fails, told through a file: this process stays one that has used nothing.
  std::string result_of(Use use) {
    const std::string file = folder_ + "/result";
    const Verdict verdict = in_a_child([&] {
      Result<std::string> result = use();
      if (!result) return fprintf(stderr, "%s\n", result.error().message.c_str()), WrongError;
      FILE* to = fopen(file.c_str(), "w");
      fwrite(result->data(), 1, result->size(), to);
      return fclose(to) == 0 ? Fine : WrongResult;
    });
    if (verdict != Fine) return "";
    std::string text(std::filesystem::file_size(file), '\0');
    FILE* from = fopen(file.c_str(), "r");
    EXPECT_EQ(fread(text.data(), 1, text.size(), from), text.size());
    fclose(from);
    return text;
  }
  void fail_each(Use use, long stride) {
    const std::string want = result_of(use);
    ASSERT_NE(want, "");
    fail_in_turn(use, want, stride);
  }
  std::string folder_;
};

TEST_F(OutOfMemory, fault_40_PlanOnTheCpu) { fail_each(plan_on_the_cpu, 7); }
TEST_F(OutOfMemory, fault_40_PlanOfTheReference) { fail_each(plan_of_the_reference, 7); }
TEST_F(OutOfMemory, fault_40_OneCall) { fail_each(one_call, 7); }
TEST_F(OutOfMemory, fault_40_TextAndBuilder) { fail_each(text_and_builder, 3); }
TEST_F(OutOfMemory, fault_40_CAbi) { fail_each(c_abi, 7); }

TEST_F(OutOfMemory, fault_40_WasmKernel) {
  module_bytes();
  if (in_a_child([] { return WasmHost::open() ? Fine : NeverFailed; }) != Fine)
    GTEST_SKIP() << WasmHost::open().error().message;
  fail_each(wasm_kernel, 7);
}

TEST_F(OutOfMemory, fault_40_Jit) {
  if (in_a_child([] { return jit_compile() ? Fine : NeverFailed; }) != Fine)
    GTEST_SKIP() << jit_compile().error().message;
  fail_each(jit_compile, 11);
}

}  // namespace
}  // namespace trireme
