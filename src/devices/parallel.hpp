// Threads that wait for work and share it out, or the host's.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "trireme/parallel.hpp"

namespace trireme {

inline constexpr int max_parts = 4096;  // beyond, the caller does all of them by itself

// Runs body(0) .. body(parts - 1), each once, on up to `parts` threads, the caller's among them; returns when all are
// done. What a part throws is thrown when all are done, the first of it. One part costs no hand-off. Where the threads
// are busy, with another caller's parts or with the part that calls, the caller does all of its parts by itself: many
// callers take no more threads than one. It takes no lock, and allocates nothing once its threads are there: they are
// made by start_threads() or at first use, and stay. After a fork the child makes threads of its own.
void in_parallel(int parts, const std::function<void(int)>& body);
void start_threads(int parts);

// The first exception of several threads. None leaves a thread by itself, which would end the process.
class FirstException {
 public:
  template <typename Body>
  void guard(const Body& body, int part) noexcept {
    try {
      body(part);
    } catch (...) {
      if (!there_.test_and_set()) first_ = std::current_exception();
    }
  }
  // When all threads are done with it, and whoever asks knows.
  std::exception_ptr take() {
    there_.clear();
    return std::exchange(first_, nullptr);
  }

 private:
  std::atomic_flag there_;
  std::exception_ptr first_;
};

template <typename Body>
void in_parallel(const ParallelFor& host, int workers, Body&& body) {
  // std::ref: the body is called where it stands, and nothing is allocated.
  if (!host || workers <= 1) return in_parallel(workers, std::ref(body));
  struct Context {
    std::remove_reference_t<Body>& body;
    FirstException thrown;
  } context{body};
  auto call = [](void* given, int k) {
    auto& mine = *static_cast<Context*>(given);
    mine.thrown.guard(mine.body, k);
  };
  host.run(host.host, workers, call, &context);
  if (const std::exception_ptr thrown = context.thrown.take()) std::rethrow_exception(thrown);
}

}  // namespace trireme
