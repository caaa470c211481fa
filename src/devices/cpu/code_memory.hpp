// Machine code made callable: written first, then made executable; never both at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "trireme/result.hpp"

namespace trireme::cpu {

class CodeMemory {
 public:
  // Copies position-independent code whose entry is its first byte. Driver error where the system forbids it. `name` is
  // what `perf` calls it.
  static Result<CodeMemory> create(std::span<const std::uint8_t> code, const std::string& name = "kernel");

  CodeMemory(CodeMemory&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}
  CodeMemory& operator=(CodeMemory&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    return *this;
  }
  ~CodeMemory();

  template <typename Function>
  Function* entry() const {
    return reinterpret_cast<Function*>(address_);
  }

 private:
  CodeMemory(void* address, std::size_t mapped_bytes) : address_(address), mapped_bytes_(mapped_bytes) {}
  void* address_;
  std::size_t mapped_bytes_;
};

// Why there can be no such memory in this process; empty if there can.
std::string code_memory_denied();

}  // namespace trireme::cpu
