#include "devices/cpu/code_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace trireme::cpu {

Result<CodeMemory> CodeMemory::create(std::span<const std::uint8_t> code) {
  if (code.empty()) return Error{Code::Internal, "cpu: there is no code to make executable"};
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped_bytes = (code.size() + page - 1) / page * page;
  void* address = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Error{Code::OutOfMemory,
                 fmt::format("cpu: no memory for {} bytes of machine code: {}", code.size(), std::strerror(errno))};
  CodeMemory made(address, mapped_bytes);
  std::memcpy(address, code.data(), code.size());
  if (mprotect(address, mapped_bytes, PROT_READ | PROT_EXEC) != 0)
    return Error{Code::Driver,
                 fmt::format("cpu: the system forbids memory of this process to become executable: {}; allow it "
                             "(SELinux execmem, systemd MemoryDenyWriteExecute) or use the reference device",
                             std::strerror(errno))};
  return made;
}

CodeMemory::~CodeMemory() {
  if (address_) munmap(address_, mapped_bytes_);
}

}  // namespace trireme::cpu
