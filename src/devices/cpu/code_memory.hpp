// Machine code made callable: written first, then made executable; never both at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::cpu {

class CodeMemory {
 public:
  // Position-independent code whose entry is its first byte.
  struct Function {
    std::span<const std::uint8_t> code;
    std::string name = "kernel";  // what `perf` calls it
  };
  // Copies functions, at cache lines, into one mapping: asking the system takes as long as making a hundred
  // instructions. Driver error where it forbids executable memory.
  static Result<CodeMemory> create(const std::vector<Function>& functions);

  CodeMemory(CodeMemory&& other) noexcept { swap(other); }
  CodeMemory& operator=(CodeMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~CodeMemory();

  std::size_t size() const { return starts_.size(); }  // functions
  template <typename Signature>
  Signature* entry(std::size_t function = 0) const {
    return reinterpret_cast<Signature*>(static_cast<std::byte*>(address_) + starts_[function]);
  }

 private:
  CodeMemory(void* address, std::size_t mapped_bytes, std::vector<std::size_t> starts)
      : address_(address), mapped_bytes_(mapped_bytes), starts_(std::move(starts)) {}
  void swap(CodeMemory& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(starts_, other.starts_);
  }
  void* address_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<std::size_t> starts_;
};

// Why there can be no such memory in this process; empty if there can.
std::string code_memory_denied();

}  // namespace trireme::cpu
