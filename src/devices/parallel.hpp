// Threads by fork and join.
#pragma once
#include <thread>
#include <vector>

namespace trireme {

// Runs body(worker) on so many threads, the caller's among them.
template <typename Body>
void in_parallel(int workers, Body&& body) {
  std::vector<std::thread> others;
  for (int k = 1; k < workers; ++k) others.emplace_back([&body, k] { body(k); });
  body(0);
  for (std::thread& other : others) other.join();
}

}  // namespace trireme
