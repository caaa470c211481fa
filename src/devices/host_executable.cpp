#include <new>

#include "devices/device.hpp"

namespace trireme {

Result<std::shared_ptr<std::byte>> HostExecutable::allocate(std::int64_t bytes) const {
  constexpr std::align_val_t alignment{256};
  void* memory = ::operator new(static_cast<std::size_t>(bytes), alignment, std::nothrow);
  if (!memory) return Error{Code::OutOfMemory, "no memory for " + std::to_string(bytes) + " bytes"};
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                    [](std::byte* each) { ::operator delete(each, alignment); });
}

Status HostExecutable::run(const Problem2d& problem, const RunOptions& options) {
  MemoryBytes bytes = memory_bytes(problem.rows, problem.columns, options);
  TRIREME_TRY(memory, allocate(whole_lines(bytes.workspace) + bytes.own));
  return run_in(problem, options, {.workspace = memory.get(), .own = memory.get() + whole_lines(bytes.workspace)});
}

}  // namespace trireme
