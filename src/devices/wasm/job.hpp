// A module with entries rows and columns (targets/wasm/emit.hpp), what it works on and the calls to make: for any host.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::wasm {

// A region of the module's memory, aligned to 64 bytes. The last one of a job ends where memory ends, so that an access
// beyond it traps; a write between regions is found and reported.
struct JobBuffer {
  std::span<std::uint8_t> data;  // copied in before the calls and back after them; empty: neither
  std::size_t bytes = 0;         // where there is no data (scratch, workspace): how many, filled with 0xa5
};

struct Job {
  struct Relocation {
    std::size_t slot, buffer;
    std::int64_t offset_bytes = 0;
  };
  struct Call {
    enum class Entry : std::uint8_t { Rows, Columns } entry = Entry::Rows;
    std::int64_t first = 0, last = 0, total = 0;  // columns have no total
  };

  std::span<const std::uint8_t> module;
  bool relaxed = false;  // the module needs relaxed_madd, and that fused
  std::vector<JobBuffer> buffers;
  std::vector<std::uint64_t> slots;
  std::vector<Relocation> relocations;  // slots[slot] = address of the buffer + offset_bytes
  std::vector<Call> calls;              // in this order
};

// Modules that show what an engine does.
std::vector<std::uint8_t> multiply_probe();  // f(a, b) = a * b, for a product that is subnormal
std::vector<std::uint8_t> madd_probe();      // f() is 1 where relaxed_madd rounds once

}  // namespace trireme::wasm
