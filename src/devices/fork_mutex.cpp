#include "devices/fork_mutex.hpp"

#include <pthread.h>

namespace trireme {

struct AllForkMutexes {
  static inline std::mutex mutex;  // of the list
  static inline ForkMutex* first = nullptr;

  static void lock() {
    mutex.lock();
    for (ForkMutex* each = first; each; each = each->next_) each->lock();
  }
  static void unlock() {
    for (ForkMutex* each = first; each; each = each->next_) each->unlock();
    mutex.unlock();
  }
};

ForkMutex::ForkMutex() {
  const std::lock_guard lock(AllForkMutexes::mutex);
  if (!AllForkMutexes::first) pthread_atfork(AllForkMutexes::lock, AllForkMutexes::unlock, AllForkMutexes::unlock);
  next_ = AllForkMutexes::first;
  AllForkMutexes::first = this;
}

}  // namespace trireme
