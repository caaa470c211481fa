// Interprets lowered kernels on host memory: the 32-lane machine that checks shuffles, barriers and ring order without
// a GPU, and simd kernels of any width.
#pragma once
#include <cstdint>
#include <span>

#include "schedule/kernel.hpp"
#include "trireme/result.hpp"

namespace trireme::lanes {

// Thread kernels: runs blocks 0 .. blocks-1 one after the other. Simd kernels: runs once (blocks is ignored).
// An error says what a GPU would have got wrong: a race on scratch, a barrier not met by all, a read of scratch that
// was never written or whose copy was not waited for, an address outside scratch.
Status interpret(const Kernel& kernel, std::span<const std::uint64_t> args, std::int64_t first, std::int64_t last,
                 std::int64_t total, std::int64_t blocks);

}  // namespace trireme::lanes
