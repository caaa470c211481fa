#include "devices/parallel.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace trireme {
namespace {

class Pool {
 public:
  const pid_t pid = getpid();

  // False: it has work already.
  bool run(int parts, const std::function<void(int)>& body) {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    std::unique_lock lock(mutex_);
    grow(parts - 1);
    body_ = &body;
    taken_.assign(parts, false);
    untaken_ = unfinished_ = parts;
    for (int k = 1; k < parts; ++k) work_.notify_one();
    work(lock, 0);
    done_.wait(lock, [&] { return unfinished_ == 0; });
    lock.unlock();
    busy_.clear(std::memory_order_release);
    return true;
  }

 private:
  // Takes parts until none is left, `mine` first: what a thread had in its caches last time it gets again.
  void work(std::unique_lock<std::mutex>& lock, std::size_t mine) {
    while (untaken_ > 0) {
      std::size_t part = mine < taken_.size() && !taken_[mine]
                             ? mine
                             : std::find(taken_.begin(), taken_.end(), false) - taken_.begin();
      taken_[part] = true;
      --untaken_;
      const std::function<void(int)>& body = *body_;
      lock.unlock();
      body(static_cast<int>(part));
      lock.lock();
      if (--unfinished_ == 0) done_.notify_one();
    }
  }

  // A system that gives no more threads leaves more parts to those there are. Signals are for the host's own threads.
  void grow(int wanted) {
    if (threads_ >= wanted) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; threads_ < wanted; ++threads_)
        std::thread([this, mine = static_cast<std::size_t>(threads_ + 1)] {
          std::unique_lock lock(mutex_);
          for (;;) {
            work_.wait(lock, [&] { return untaken_ > 0; });
            work(lock, mine);
          }
        }).detach();
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  std::atomic_flag busy_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  const std::function<void(int)>* body_ = nullptr;
  std::vector<bool> taken_;
  int untaken_ = 0, unfinished_ = 0, threads_ = 0;
};

// Never destroyed: its threads wait until the process ends. A child's copy of the parent's has no threads and perhaps a
// lock that nobody will open, so it is left alone.
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
  if (parts > 1 && pool().run(parts, body)) return;
  for (int k = 0; k < parts; ++k) body(k);
}

}  // namespace trireme
