#include "devices/cpu/code_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "devices/device.hpp"
#include "support/environment.hpp"

namespace trireme::cpu {

namespace {

// For `perf report`: which bytes are which kernel's. Asked for by TRIREME_PERF=map; what cannot be written is left out.
void note_for_perf(const void* address, std::size_t bytes, const std::string& name) {
  if (Result<bool> wanted = environment::perf_map(); !wanted || !*wanted) return;
  std::string file = fmt::format("/tmp/perf-{}.map", getpid());
  int map = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (map < 0) return;
  std::string line = fmt::format("{:x} {:x} trireme:{}\n", reinterpret_cast<std::uintptr_t>(address), bytes, name);
  [[maybe_unused]] ssize_t written = write(map, line.data(), line.size());
  close(map);
}

}  // namespace

std::string code_memory_denied() {
  static const std::string reason = [] {
    const std::uint8_t ret = 0xC3;
    Result<CodeMemory> made = CodeMemory::create({{{&ret, 1}, "probe"}});
    // What the system forbids it forbids for good; want of memory passes, and the next one asks again.
    if (!made && made.error().code == Code::OutOfMemory) throw std::bad_alloc();
    return made ? std::string() : made.error().message;
  }();
  return reason;
}

Result<CodeMemory> CodeMemory::create(const std::vector<Function>& functions) {
  std::vector<std::size_t> starts;
  std::size_t bytes = 0;
  for (const Function& each : functions) {
    if (each.code.empty()) return Error{Code::Internal, "cpu: there is no code to make executable"};
    starts.push_back(bytes);
    bytes += static_cast<std::size_t>(whole_lines(static_cast<std::int64_t>(each.code.size())));
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped_bytes = (bytes + page - 1) / page * page;
  void* address =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (address == MAP_FAILED)
    return Error{Code::OutOfMemory,
                 fmt::format("cpu: no memory for {} bytes of machine code: {}", bytes, std::strerror(errno))};
  CodeMemory made(address, mapped_bytes, std::move(starts));
  auto at = [&](std::size_t k) { return static_cast<std::byte*>(address) + made.starts_[k]; };
  for (std::size_t k = 0; k < functions.size(); ++k)
    std::memcpy(at(k), functions[k].code.data(), functions[k].code.size());
  __builtin___clear_cache(static_cast<char*>(address), static_cast<char*>(address) + bytes);
  if (mprotect(address, mapped_bytes, PROT_READ | PROT_EXEC) != 0)
    return Error{Code::Driver,
                 fmt::format("the system forbids memory of this process to become executable: {}; allow it "
                             "(SELinux execmem, systemd MemoryDenyWriteExecute) or use the reference device",
                             std::strerror(errno))};
  for (std::size_t k = 0; k < functions.size(); ++k) note_for_perf(at(k), functions[k].code.size(), functions[k].name);
  return made;
}

CodeMemory::~CodeMemory() {
  if (address_) munmap(address_, mapped_bytes_);
}

}  // namespace trireme::cpu
