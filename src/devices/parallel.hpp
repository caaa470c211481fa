// Threads that wait for work and share it out, or the host's.
#pragma once
#include <functional>
#include <type_traits>

#include "trireme/parallel.hpp"

namespace trireme {

inline constexpr int max_parts = 4096;  // beyond, the caller does all of them by itself

// Runs body(0) .. body(parts - 1), each once, on up to `parts` threads, the caller's among them; returns when all are
// done. One part costs no hand-off. Where the threads are busy, with another caller's parts or with the part that
// calls, the caller does all of its parts by itself: many callers take no more threads than one. It takes no lock, and
// allocates nothing once its threads are there: they are made by start_threads() or at first use, and stay. After a
// fork the child makes threads of its own.
void in_parallel(int parts, const std::function<void(int)>& body);
void start_threads(int parts);

template <typename Body>
void in_parallel(const ParallelFor& host, int workers, Body&& body) {
  // std::ref: the body is called where it stands, and nothing is allocated.
  if (!host || workers <= 1) return in_parallel(workers, std::ref(body));
  auto call = [](void* context, int k) { (*static_cast<std::remove_reference_t<Body>*>(context))(k); };
  host.run(host.host, workers, call, &body);
}

}  // namespace trireme
