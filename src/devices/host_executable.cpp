#include "devices/device.hpp"
#include "layout/buffers.hpp"

namespace trireme {

Status HostExecutable::run(const Problem2d& problem, const RunOptions& options) {
  MemoryBytes bytes = memory_bytes(problem.rows, problem.columns, options);
  std::vector<std::byte, CacheLineAllocator<std::byte>> memory(whole_lines(bytes.workspace) + bytes.own);
  return run_in(problem, options, memory.data(), memory.data() + whole_lines(bytes.workspace));
}

}  // namespace trireme
