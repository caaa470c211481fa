// trireme::run: one call, over a bounded cache of plans.
#include <cstdio>
#include <thread>

#include "plan/plan_for_test.hpp"

namespace trireme {
namespace {

TEST(OneCall, RunsAndRefuses) {
  Floats x = sampled(6 * 50), gamma = sampled(50, "gamma"), y(300);
  run("rms_norm", {{"x", view(x, {2, 3, 50})}, {"gamma", view(gamma, {50})}, {"y", view(y, {2, 3, 50})}}).value();
  EXPECT_TRUE(same_bits(y, by_reference(x, 6, 50).y));
  expect_refused(run("rms_norm", {{"gamma", view(gamma, {50})}}), Code::InvalidArgument,
                 "rms_norm needs an array for x, or y, or rstd: nothing else says how many rows there are");
  expect_refused(run("rms_norm", {{"x", view(x, {6, 50})}, {"z", view(y, {6, 50})}, {"y", view(y, {6, 50})}}),
                 Code::InvalidArgument, "no array 'z'");
}

// No operand has the problem's shape: rows are the tokens', columns the table's.
TEST(OneCall, ATableAndWhoPicksItsRows) {
  Floats table = sampled(7 * 50), y(300);
  std::vector<std::int32_t> token = {6, 0, 3, 7, -1, 3};
  run("embedding",
      {{"token", View{token.data(), Type::I32, {2, 3}}}, {"table", view(table, {7, 50})}, {"y", view(y, {2, 3, 50})}})
      .value();
  for (std::size_t k = 0; k < 300; ++k) {
    const std::int32_t row = token[k / 50];
    ASSERT_EQ(y[k], row >= 0 && row < 7 ? table[static_cast<std::size_t>(row) * 50 + k % 50] : 0) << k;
  }
}

TEST(OneCall, fault_29_ManyShapesStayBounded) {
  Floats x = sampled(1000), y(1000);
  for (std::int64_t columns = 1; columns <= 400; ++columns)
    run("rms_norm", {{"x", View{x.data(), Type::F32, {1, columns}}}, {"y", View{y.data(), Type::F32, {1, columns}}}})
        .value();
  EXPECT_LE(cached_plans(), max_cached_plans);
}

// Pages of this process that are in memory.
long resident_pages() {
  long size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident;
}

TEST(OneCall, fault_29_TenThousandShapesInBoundedMemory) {
  constexpr std::int64_t shapes = 10000, first = 600;  // beyond short rows, whose number of columns is compiled in
  Floats x = sampled(first + shapes), y(x.size());
  auto call = [&](std::int64_t columns) {
    run("swiglu", {{"x", View{x.data(), Type::F32, {1, columns}}},
                   {"gate", View{x.data(), Type::F32, {1, columns}}},
                   {"y", View{y.data(), Type::F32, {1, columns}}}})
        .value();
  };
  for (std::int64_t k = 0; k < 500; ++k) call(first + k);
  long before = resident_pages();
  for (std::int64_t k = 500; k < shapes; ++k) call(first + k);
#if !defined(__SANITIZE_ADDRESS__)                        // which keeps what was freed
  EXPECT_LT(resident_pages() - before, 4096) << "pages";  // 16 MB; a plan is some 20 KB
#endif
  EXPECT_LE(cached_plans(), max_cached_plans);
}

TEST(OneCall, fault_29_ManyThreadsPlanTheSame) {
  Floats x = sampled(300);
  std::vector<Floats> results(64, Floats(300));
  std::vector<std::thread> threads;
  for (Floats& y : results)
    threads.emplace_back([&x, &y] {
      for (int k = 0; k < 20; ++k)
        run("softmax", {{"x", View{x.data(), Type::F32, {3, 100}}}, {"y", View{y.data(), Type::F32, {3, 100}}}})
            .value();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Floats& y : results) EXPECT_TRUE(same_bits(y, results[0]));
}

}  // namespace
}  // namespace trireme
