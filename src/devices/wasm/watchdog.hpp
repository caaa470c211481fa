// Ends calls that take too long. One thread serves all of them: it is made with the first, sleeps until the earliest
// time that it was told of, and is woken only for an earlier one. A call that ends in time therefore costs two short
// locks (0.1 us), and the thread wakes about once in as long as a call may take.
#pragma once
#include <atomic>
#include <chrono>

#include "trireme/result.hpp"

namespace trireme::wasm {

class Watchdog;

// A call that is watched from start() on, for as long as this lives. Unless started it has all the time there is.
class Watch {
 public:
  Watch() = default;
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Calls stop(context) once when the time is over, from the watchdog's thread. OutOfMemory: there is no such thread.
  Status start(double seconds, void (*stop)(void*), void* context);
  // What stop() does may be seen a little later than this.
  bool is_over() const { return is_over_; }

 private:
  friend class Watchdog;
  Watchdog* watchdog_ = nullptr;
  std::chrono::steady_clock::time_point end_;
  void (*stop_)(void*) = nullptr;
  void* context_ = nullptr;
  std::atomic<bool> is_over_ = false;
};

}  // namespace trireme::wasm
