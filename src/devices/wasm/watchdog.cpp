#include "devices/wasm/watchdog.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace trireme::wasm {

using Clock = std::chrono::steady_clock;

class Watchdog {
 public:
  const pid_t pid = getpid();

  // False: the system gives no thread.
  bool add(Watch& watch) {
    std::lock_guard lock(mutex_);
    if (!has_thread_ && !start_thread()) return false;
    watched_.push_back(&watch);
    if (watch.end_ < wakes_at_) {
      wakes_at_ = watch.end_;
      earlier_.notify_one();
    }
    return true;
  }

  void remove(Watch& watch) {
    std::lock_guard lock(mutex_);
    std::erase(watched_, &watch);
  }

 private:
  // Signals are for the host's own threads.
  bool start_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { watch(); }).detach();
      has_thread_ = true;
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_thread_;
  }

  // Where nobody is watched any more it still sleeps until the time it was told: the next call's is later, as a rule,
  // and need not wake it.
  void watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (wakes_at_ == Clock::time_point::max()) earlier_.wait(lock);
      else earlier_.wait_until(lock, wakes_at_);
      const Clock::time_point now = Clock::now();
      if (now < wakes_at_) continue;
      wakes_at_ = Clock::time_point::max();
      for (Watch* each : watched_) {
        if (each->is_over_) continue;
        if (each->end_ > now) {
          wakes_at_ = std::min(wakes_at_, each->end_);
          continue;
        }
        each->is_over_ = true;  // before stop(): who begins something stoppable looks at it afterwards
        each->stop_(each->context_);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable earlier_;
  Clock::time_point wakes_at_ = Clock::time_point::max();
  std::vector<Watch*> watched_;
  bool has_thread_ = false;
};

namespace {

// Never destroyed: its thread waits until the process ends. A child's copy of the parent's has no thread, and perhaps a
// lock that nobody holds any more, so it is left alone.
Watchdog& watchdog() {
  static std::atomic<Watchdog*> current;
  Watchdog* found = current.load(std::memory_order_acquire);
  if (found && found->pid == getpid()) return *found;
  auto* made = new Watchdog;
  if (current.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *found;
}

}  // namespace

Status Watch::start(double seconds, void (*stop)(void*), void* context) {
  stop_ = stop;
  context_ = context;
  end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  Watchdog& dog = watchdog();
  if (!dog.add(*this)) return Error{Code::OutOfMemory, "the system gives no thread to watch over a time limit"};
  watchdog_ = &dog;
  return Done{};
}

Watch::~Watch() {
  if (watchdog_) watchdog_->remove(*this);
}

}  // namespace trireme::wasm
