// Plan::run neither allocates, nor takes a lock, nor looks up a name: counted, on all threads.
// What this file replaces counts for the whole test program.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

#include "plan/plan_for_test.hpp"
#include "plan/run_counts_for_test.hpp"

namespace {
std::atomic<long> allocations = 0, locks = 0, comparisons = 0;

void* aligned(std::size_t bytes, std::align_val_t alignment) {
  auto line = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(line, (bytes + line) / line * line);
}
}  // namespace

// Not inlined: g++ would see free() given what new returned, and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  if (void* memory = aligned(bytes, alignment)) return memory;
  throw std::bad_alloc();
}
// Sanitizers have forms of their own of these, too.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  ++allocations;
  return aligned(bytes, alignment);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// Sanitizers have replaced these already.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool counts_all = false;
#else
constexpr bool counts_all = true;

#define COUNT_LOCKS(function, Lock)                                                         \
  extern "C" int function(Lock* lock) noexcept {                                            \
    static const auto next = reinterpret_cast<int (*)(Lock*)>(dlsym(RTLD_NEXT, #function)); \
    ++locks;                                                                                \
    return next(lock);                                                                      \
  }
COUNT_LOCKS(pthread_mutex_lock, pthread_mutex_t)
COUNT_LOCKS(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNT_LOCKS(pthread_rwlock_wrlock, pthread_rwlock_t)
#undef COUNT_LOCKS

// Names are found by comparing them. Shapes, which may be compared, are multiples of 8 bytes; hardly a name is.
extern "C" int memcmp(const void* a, const void* b, std::size_t bytes) noexcept {
  if (bytes % 8 != 0) ++comparisons;
  const auto *left = static_cast<const volatile unsigned char*>(a),
             *right = static_cast<const volatile unsigned char*>(b);
  for (std::size_t k = 0; k < bytes; ++k)
    if (left[k] != right[k]) return left[k] - right[k];
  return 0;
}
extern "C" int bcmp(const void* a, const void* b, std::size_t bytes) noexcept { return memcmp(a, b, bytes); }
#endif

namespace trireme {

Counts counts_now() { return {allocations, locks, comparisons}; }

namespace {

TEST(RunCounts, CountersCount) {
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {4, 8}}).value();
  Args args = plan.args();
  const Counts before = counts_now();
  Floats x(32);
  args["rstd"] = view(x);
  std::mutex mutex;
  { std::lock_guard lock(mutex); }
  const Counts after = counts_now();
  EXPECT_EQ(after.allocated - before.allocated, 1);
  if (!counts_all) GTEST_SKIP() << "locks and comparisons are not counted under sanitizers";
  EXPECT_EQ(after.locked - before.locked, 1);
  EXPECT_GE(after.compared - before.compared, 1);
}

// From the first run on: threads, too, are made with the plan.
void expect_no_counts(PlanOptions options) {
  options.shape = {40, 500};
  for (const RowProgram::Parameter& each : options.program.signature())
    if (each.kind == RowProgram::Kind::Constant && !each.optional) options.constants[each.name] = 2;
  Plan plan = Plan::create(cpu(), options).value();
  Workspace workspace = plan.make_workspace().value();
  Args args = plan.args();
  std::vector<Floats> memory;
  constexpr std::size_t size = 40 * 500;  // of an array; strides reach one size down and two up
  for (std::size_t k = 0; k < plan.array_count(); ++k) {
    const Plan::Array array = plan.array(k);
    memory.push_back(sampled(3 * size, array.name.c_str()));
    args[array.name] = View{memory.back().data() + size, array.type};  // of integers: any, also outside of tables
  }
  Args::Slot slot = args.slot(plan.names()[0]).value();
  const View again{memory[0].data() + size, plan.array(0).type};
  const Counts before = counts_now();
  Status first = plan.run(args, {}, workspace.span()), second = plan.run(args, {}, workspace.span());
  slot = again;
  Status third = plan.run(args, {}, workspace.span());
  const Counts after = counts_now();
  EXPECT_TRUE(first && second && third) << refusal(first);
  EXPECT_EQ(print(after), print(before)) << plan.describe();
}

TEST(RunCounts, RunAllocatesNothingTakesNoLockAndLooksUpNoName) {
  if (!has_kernels()) GTEST_SKIP() << cpu().why();  // the reference may allocate
  for (const std::string& name : RowProgram::names())
    for (bool backward : {false, true})
      for (int threads : {1, 3}) {
        RowProgram program = RowProgram::named(name).value();
        expect_no_counts({.program = backward ? program.differentiate().value() : program, .threads = threads});
      }
}

TEST(RunCounts, NorDoesItForAnyLayoutOrOnTheHostsThreads) {
  if (!has_kernels()) GTEST_SKIP() << cpu().why();  // the reference may allocate
  auto in_order = [](void*, int count, ParallelFor::Body* body, void* context) {
    for (int k = 0; k < count; ++k) body(context, k);
  };
  for (int threads : {1, 3})
    for (RowProgram program : {rms_norm(), rms_norm().differentiate().value()}) {
      expect_no_counts({.program = program, .strides = {{"x", {1, 40}}}, .threads = threads});    // copied
      expect_no_counts({.program = program, .strides = {{"x", {1000, 2}}}, .threads = threads});  // likewise
      expect_no_counts({.program = program, .strides = {{"x", {-500, 1}}}, .threads = 1});
      expect_no_counts({.program = program, .threads = threads, .parallel_for = {in_order}});
    }
}

}  // namespace
}  // namespace trireme
