#include "devices/wasm/fork_gate.hpp"

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace trireme::wasm {
namespace {

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool is_closed = false;

  void close() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !is_closed; });  // two threads may fork
    is_closed = true;
    changed.wait(lock, [this] { return inside == 0; });
    lock.release();  // open() unlocks: nobody else's lock is copied to the child
  }
  void open() {
    is_closed = false;
    mutex.unlock();
    changed.notify_all();
  }
};

thread_local int gate_depth = 0;  // a gate that closes meanwhile does not stop who is inside already

// Never destroyed: threads may outlive main. A child leaves its copy alone, with the threads that wait there, and has a
// gate of its own.
Gate* gate = new Gate;
[[maybe_unused]] const int gate_registered =
    pthread_atfork([] { gate->close(); }, [] { gate->open(); }, [] { gate = new Gate; });

}  // namespace

InsideForkGate::InsideForkGate() {
  if (gate_depth++ > 0) return;
  std::unique_lock lock(gate->mutex);
  gate->changed.wait(lock, [] { return !gate->is_closed; });
  ++gate->inside;
}

InsideForkGate::~InsideForkGate() {
  if (--gate_depth > 0) return;
  std::lock_guard lock(gate->mutex);
  --gate->inside;
  gate->changed.notify_all();
}

}  // namespace trireme::wasm
