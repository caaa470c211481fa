// A lock that fork() takes first, so that the child finds it free, and whole what it guards. For objects that are never
// destroyed. Who holds one takes no other, and does not wait for anybody.
#pragma once
#include <mutex>

namespace trireme {

class ForkMutex {
 public:
  ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct AllForkMutexes;
  std::mutex mutex_;
  ForkMutex* next_ = nullptr;
};

}  // namespace trireme
