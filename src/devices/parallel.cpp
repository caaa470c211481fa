#include "devices/parallel.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <system_error>
#include <thread>

#include "support/processor.hpp"

namespace trireme {
namespace {

// How long a thread watches before it sleeps. On a virtual machine it takes 20 us to wake it, and whoever does so 7: as
// long as many a call. Who watches about as long as that never waits more than twice what is best. Yielding meanwhile
// gained nothing, also with more threads than processors: parts that nobody came for are done by those who did.
constexpr std::chrono::microseconds patience{50};

template <typename T>
void wait_while(const std::atomic<T>& value, T seen) {
  const auto start = std::chrono::steady_clock::now();
  do
    for (int k = 0; k < 16; ++k) {
      if (value.load(std::memory_order_acquire) != seen) return;
      pause_briefly();
    }
  while (std::chrono::steady_clock::now() - start < patience);
  value.wait(seen);
}

// No lock: threads watch, then wait by futex (std::atomic::wait), and whoever claims a part first does it.
//
// A job is a number that grows, its parts in the low bits. A part is claimed by raising its entry to the job's number;
// so a thread that wakes up late, with the number of a job that is over, finds every part of it claimed. Who has
// claimed a part knows that its job is not over, and that `body_` is that job's.
class Pool {
 public:
  const pid_t pid = getpid();

  // False: it has work already.
  bool run(int parts, const std::function<void(int)>& body) {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    grow(parts - 1);
    body_ = &body;
    unfinished_.store(parts, std::memory_order_relaxed);
    std::uint64_t before = job_.load(std::memory_order_relaxed);
    job_.store(((before >> part_bits) + 1) << part_bits | static_cast<std::uint64_t>(parts), std::memory_order_release);
    for (int k = 1; k < parts && k <= threads_; ++k) {
      woken_[k].fetch_add(1);
      woken_[k].notify_one();
    }
    work(0);
    for (int left; (left = unfinished_.load(std::memory_order_acquire)) > 0;) wait_while(unfinished_, left);
    const std::exception_ptr thrown = thrown_.take();
    busy_.clear(std::memory_order_release);
    if (thrown) std::rethrow_exception(thrown);
    return true;
  }

  void start(int wanted) {
    if (busy_.test_and_set(std::memory_order_acquire)) return;  // a run sees to it
    grow(wanted);
    busy_.clear(std::memory_order_release);
  }

 private:
  static constexpr int part_bits = 16;
  static_assert(max_parts < 1 << part_bits);

  // Does parts until none is left, `mine` first: what a thread had in its caches last time it gets again.
  void work(int mine) {
    std::uint64_t job = job_.load(std::memory_order_acquire);
    int parts = static_cast<int>(job & ((1 << part_bits) - 1));
    for (int k = 0; k < parts; ++k) {
      int part = (mine + k) % parts;  // `mine` may be beyond them: woken for one job, it finds the next
      if (!claim(part, job)) continue;
      thrown_.guard(*body_, part);
      if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_one();
    }
  }

  bool claim(int part, std::uint64_t job) {
    std::uint64_t last = claimed_[part].load(std::memory_order_relaxed);
    return last < job && claimed_[part].compare_exchange_strong(last, job, std::memory_order_relaxed);
  }

  // A system that gives no more threads leaves more parts to those there are. Signals are for the host's own threads.
  void grow(int wanted) {
    if (threads_ >= wanted) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; threads_ < wanted; ++threads_)
        std::thread([this, mine = threads_ + 1] {
          for (std::uint32_t seen = 0;;) {
            wait_while(woken_[mine], seen);
            seen = woken_[mine].load();  // before the work: a call that comes meanwhile is not slept through
            work(mine);
          }
        }).detach();
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  std::atomic_flag busy_;
  const std::function<void(int)>* body_ = nullptr;
  FirstException thrown_;
  int threads_ = 0;
  std::atomic<std::uint64_t> job_ = 0;
  std::atomic<int> unfinished_ = 0;
  std::array<std::atomic<std::uint64_t>, max_parts> claimed_ = {};  // by part: the last job that it was claimed for
  std::array<std::atomic<std::uint32_t>, max_parts> woken_ = {};    // by thread
};

// Never destroyed: its threads wait until the process ends. A child's copy of the parent's has no threads and perhaps
// half a job, so it is left alone.
Pool& pool() {
  static std::atomic<Pool*> current;
  Pool* found = current.load(std::memory_order_acquire);
  if (found && found->pid == getpid()) return *found;
  Pool* made = new Pool;
  if (current.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *found;
}

}  // namespace

void in_parallel(int parts, const std::function<void(int)>& body) {
  if (parts > 1 && parts <= max_parts && pool().run(parts, body)) return;
  for (int k = 0; k < parts; ++k) body(k);
}

void start_threads(int parts) {
  if (parts > 1 && parts <= max_parts) pool().start(parts - 1);
}

}  // namespace trireme
