#include "devices/parallel.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace trireme {
namespace {

bool every_part_once(int parts) {
  std::vector<std::atomic<int>> times(parts);
  in_parallel(parts, [&](int part) { ++times[part]; });
  for (const auto& each : times)
    if (each != 1) return false;
  return true;
}

TEST(Parallel, EveryPartOnce) {
  for (int parts : {0, 1, 2, 3, 7, 2, 16}) EXPECT_TRUE(every_part_once(parts)) << parts;
}

TEST(Parallel, OnePartStaysWithTheCaller) {
  in_parallel(1, [caller = std::this_thread::get_id()](int) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(Parallel, PartsMayHaveParts) {
  std::atomic<int> count = 0;
  in_parallel(3, [&](int) { in_parallel(3, [&](int) { ++count; }); });
  EXPECT_EQ(count, 9);
}

TEST(Parallel, ManyCallersAtOnce) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int k = 0; k < 8; ++k)
    callers.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) wrong += !every_part_once(4);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Parts that wait for each other: every thread that a job asks for comes, however soon jobs follow each other. Time is
// the processor's: a machine that sleeps or is busy with others delays nobody.
TEST(Parallel, NoCallIsSleptThrough) {
  start_threads(3);
  for (int turn = 0; turn < 3000; ++turn) {
    int parts = 2 + turn % 2;
    std::atomic<int> here = 0;
    std::atomic<bool> late = false;
    const std::clock_t start = std::clock();
    in_parallel(parts, [&](int) {
      ++here;
      while (here < parts && !late) {
        std::this_thread::yield();
        if (std::clock() - start > 20 * CLOCKS_PER_SEC) late = true;
      }
    });
    ASSERT_FALSE(late) << "in turn " << turn;
  }
}

TEST(Parallel, MorePartsThanThereMayBeThreads) { EXPECT_TRUE(every_part_once(max_parts + 1)); }

#if !defined(__SANITIZE_THREAD__)  // which allows no threads after a fork
// In a child, where no test has made threads yet: eight callers of four parts share three threads beside themselves.
TEST(Parallel, ManyCallersMakeNoMoreThreads) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::mutex mutex;
    std::set<std::thread::id> callers, workers;
    std::vector<std::thread> threads;
    for (int k = 0; k < 8; ++k)
      threads.emplace_back([&] {
        for (int turn = 0; turn < 100; ++turn)
          in_parallel(4, [&, caller = std::this_thread::get_id()](int) {
            std::lock_guard lock(mutex);
            callers.insert(caller);
            workers.insert(std::this_thread::get_id());
          });
      });
    for (std::thread& thread : threads) thread.join();
    for (std::thread::id caller : callers) workers.erase(caller);
    _exit(callers.size() == 8 && workers.size() <= 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Parallel, fault_22_ThreadsWorkInAForkedChild) {
  ASSERT_TRUE(every_part_once(3));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang becomes a failure
    bool right = every_part_once(3) && every_part_once(5);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(every_part_once(3) ? 0 : 1);
    int status = 1;
    waitpid(grandchild, &status, 0);
    _exit(right && status == 0 ? 0 : 1);
  }
  EXPECT_TRUE(every_part_once(3));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
}  // namespace trireme
