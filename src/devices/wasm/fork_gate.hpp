// Keeps fork() away from the moments in which wasmtime holds locks of its own, or a first use is under way: the child
// would find them held for ever. Whoever compiles, loads or destroys is inside the gate; fork() closes it, and waits
// until nobody is.
//
// Running a module is not inside: that takes as long as its caller allows. Only a trap takes a lock there, for less
// than a microsecond.
#pragma once

namespace trireme::wasm {

class InsideForkGate {
 public:
  InsideForkGate();
  ~InsideForkGate();
  InsideForkGate(const InsideForkGate&) = delete;
  InsideForkGate& operator=(const InsideForkGate&) = delete;
};

}  // namespace trireme::wasm
