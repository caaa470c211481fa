// Machine code made callable: written first, then made executable; never both at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "trireme/result.hpp"

namespace trireme::cpu {

class Executable {
 public:
  // Copies position-independent code whose entry is its first byte. Driver error where the system forbids it.
  static Result<Executable> create(std::span<const std::uint8_t> code);

  Executable(Executable&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}
  Executable& operator=(Executable&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    return *this;
  }
  ~Executable();

  template <typename Function>
  Function* entry() const {
    return reinterpret_cast<Function*>(address_);
  }

 private:
  Executable(void* address, std::size_t mapped_bytes) : address_(address), mapped_bytes_(mapped_bytes) {}
  void* address_;
  std::size_t mapped_bytes_;
};

}  // namespace trireme::cpu
