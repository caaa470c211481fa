// For tests: a buffer that ends or begins at a page nobody may touch. Sanitizers cannot see into generated code; the
// processor can. The rest of the buffer's own pages holds a canary.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace trireme {

class Guarded {
 public:
  enum class Edge { Begin, End };

  // `offset`: bytes left free between the buffer and its edge, for other alignments.
  Guarded(std::size_t bytes, Edge edge, std::size_t offset = 0) : bytes_(bytes) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    inner_bytes_ = (bytes + offset + page - 1) / page * page;
    mapped_bytes_ = inner_bytes_ + 2 * page;
    void* mapped = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    mapped_ = static_cast<std::uint8_t*>(mapped);
    inner_ = mapped_ + page;
    if (inner_bytes_ != 0 && mprotect(inner_, inner_bytes_, PROT_READ | PROT_WRITE) != 0) std::abort();
    std::memset(inner_, canary, inner_bytes_);
    data_ = edge == Edge::Begin ? inner_ + offset : inner_ + inner_bytes_ - bytes - offset;
  }
  ~Guarded() { munmap(mapped_, mapped_bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::uint8_t* data() { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

  // Nothing around the buffer was written.
  bool intact() const {
    for (const std::uint8_t* at = inner_; at != inner_ + inner_bytes_; ++at)
      if ((at < data_ || at >= data_ + bytes_) && *at != canary) return false;
    return true;
  }

  static constexpr std::uint8_t canary = 0xC5;

 private:
  std::size_t bytes_, inner_bytes_, mapped_bytes_;
  std::uint8_t *mapped_, *inner_, *data_;
};

}  // namespace trireme
