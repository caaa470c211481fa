// Interprets lowered kernels on host memory: the 32-lane machine that checks shuffles, barriers and ring order without
// a GPU, and simd kernels of any width.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "schedule/kernel.hpp"
#include "trireme/result.hpp"

namespace trireme::lanes {

// Global memory that a kernel may touch.
struct Range {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool writable = false;
};

// Thread kernels: runs blocks 0 .. blocks-1 one after the other. Simd kernels: runs once (blocks is ignored).
// An error says what a GPU would have got wrong, and names instruction, block and thread: a race on scratch, a barrier
// not met by all, a shuffle without all its lanes, a read of scratch that was never written or whose copy was not
// waited for, a register never set, an address that is misaligned, outside scratch, or (where `memory` lists any)
// outside the ranges.
Status interpret(const Kernel& kernel, std::span<const std::uint64_t> args, std::int64_t first, std::int64_t last,
                 std::int64_t total, std::int64_t blocks, std::span<const Range> memory = {});

}  // namespace trireme::lanes
