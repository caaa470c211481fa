// A list that mostly has one or two entries: those need no memory of their own.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>

namespace trireme {

template <typename T, std::uint32_t few = 2>
class Few {
 public:
  Few() = default;
  Few(std::initializer_list<T> entries) { fill(entries.begin(), entries.end()); }
  Few(std::size_t count, T entry) {
    resize(count);
    std::fill(begin(), end(), entry);
  }
  Few(const Few& from) { fill(from.begin(), from.end()); }
  Few(Few&& from) noexcept { swap(from); }
  Few& operator=(Few from) noexcept {
    swap(from);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return many_ ? many_.get() : few_; }
  T* end() { return begin() + size_; }
  const T* begin() const { return many_ ? many_.get() : few_; }
  const T* end() const { return begin() + size_; }
  T& operator[](std::size_t k) { return begin()[k]; }
  const T& operator[](std::size_t k) const { return begin()[k]; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return end()[-1]; }
  const T& back() const { return end()[-1]; }

  void push_back(T entry) {
    reserve(size_ + 1);
    begin()[size_++] = entry;
  }
  void resize(std::size_t size) {
    reserve(size);
    size_ = static_cast<std::uint32_t>(size);
  }

 private:
  void fill(const T* from, const T* to) {
    resize(static_cast<std::size_t>(to - from));
    std::copy(from, to, begin());
  }
  void reserve(std::size_t wanted) {
    if (wanted <= capacity_) return;
    const std::size_t more = std::max<std::size_t>(wanted, 2 * capacity_);
    auto larger = std::make_unique<T[]>(more);
    std::copy(begin(), end(), larger.get());
    many_ = std::move(larger);
    capacity_ = static_cast<std::uint32_t>(more);
  }
  void swap(Few& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(few_, other.few_);
    std::swap(many_, other.many_);
  }

  std::uint32_t size_ = 0, capacity_ = few;
  T few_[few] = {};
  std::unique_ptr<T[]> many_;
};

}  // namespace trireme
