// Threads by fork and join, or the host's.
#pragma once
#include <thread>
#include <type_traits>
#include <vector>

#include "trireme/parallel.hpp"

namespace trireme {

// Runs body(worker) on so many threads, the caller's among them.
template <typename Body>
void in_parallel(int workers, Body&& body) {
  std::vector<std::thread> others;
  for (int k = 1; k < workers; ++k) others.emplace_back([&body, k] { body(k); });
  body(0);
  for (std::thread& other : others) other.join();
}

template <typename Body>
void in_parallel(const ParallelFor& host, int workers, Body&& body) {
  if (!host || workers <= 1) return in_parallel(workers, body);
  auto call = [](void* context, int k) { (*static_cast<std::remove_reference_t<Body>*>(context))(k); };
  host.run(host.host, workers, call, &body);
}

}  // namespace trireme
