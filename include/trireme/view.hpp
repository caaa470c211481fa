// Arrays that callers lend: where they lie, and how.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

#include "trireme/type.hpp"

namespace trireme {

inline constexpr std::size_t max_rank = 8;

// Extents or strides of up to eight axes, outermost first. One that was given more keeps their number and is refused
// where it is used.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  Dims(std::span<const std::int64_t> values) : rank_(values.size()) {
    for (std::size_t k = 0; k < values.size() && k < max_rank; ++k) values_[k] = values[k];
  }
  void push_back(std::int64_t value) {
    if (rank_ < max_rank) values_[rank_] = value;
    ++rank_;
  }

  std::size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](std::size_t k) const { return values_[k]; }
  std::int64_t& operator[](std::size_t k) { return values_[k]; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + (rank_ < max_rank ? rank_ : max_rank); }
  friend bool operator==(const Dims&, const Dims&) = default;

 private:
  std::array<std::int64_t, max_rank> values_ = {};
  std::size_t rank_ = 0;
};

inline constexpr std::size_t unknown_bytes = std::numeric_limits<std::size_t>::max();

// Where an array's data begin. Made from a pointer to const, it serves operands only.
class Address {
 public:
  constexpr Address(std::nullptr_t = nullptr) {}
  constexpr Address(void* data) : data_(data) {}
  constexpr Address(const void* data) : data_(const_cast<void*>(data)), is_const_(true) {}

  constexpr explicit operator bool() const { return data_ != nullptr; }
  constexpr bool is_const() const { return is_const_; }
  constexpr const void* get() const { return data_; }
  constexpr void* writable() const { return data_; }  // for those who have looked at is_const()

 private:
  void* data_ = nullptr;
  bool is_const_ = false;
};

// An array that somebody else owns. Strides count elements, 0 repeats, negative walks backwards; without strides the
// array is contiguous and row-major, without a shape it has the shape that the plan expects. `data` is the element at
// index 0 of all axes; `bytes` is how much memory there is from it on, where that is known.
struct View {
  Address data = {};
  Type type = Type::F32;
  Dims shape = {};
  Dims strides = {};
  std::size_t bytes = unknown_bytes;
};

}  // namespace trireme
