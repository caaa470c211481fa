// How a host lends its own threads.
#pragma once

namespace trireme {

// Calls body(context, k) for every k in 0 .. count-1, on any threads and in any order, and returns when all are done.
struct ParallelFor {
  using Body = void(void* context, int k);
  void (*run)(void* host, int count, Body* body, void* context) = nullptr;
  void* host = nullptr;
  explicit operator bool() const { return run != nullptr; }
};

}  // namespace trireme
