// An operand or result in memory, as kernels see it.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "trireme/type.hpp"

namespace trireme {

// Entries counted over several axes as one number k, in elements: k * stride, and for each axis that does not join the
// ones inside of it a jump more every so many entries. q inside qkv: heads are 128 apart, and after every 32 of them
// there are 8192 elements of k and v to jump over.
struct Jump {
  std::int64_t every = 1, elements = 0;
  friend bool operator==(const Jump&, const Jump&) = default;
};

inline constexpr int max_jumps = 7;  // between eight axes

class Jumps {
 public:
  void push_back(Jump jump) { jumps_[count_++] = jump; }
  int size() const { return count_; }
  const Jump& operator[](int k) const { return jumps_[k]; }
  const Jump* begin() const { return jumps_.data(); }
  const Jump* end() const { return jumps_.data() + count_; }
  friend bool operator==(const Jumps&, const Jumps&) = default;

 private:
  std::array<Jump, max_jumps> jumps_ = {};  // those of inner axes first
  int count_ = 0;
};

// Products may wrap on the way; places in memory do not.
inline std::int64_t place_of(std::int64_t k, std::int64_t stride, const Jumps& jumps) {
  auto place = static_cast<std::uint64_t>(k) * static_cast<std::uint64_t>(stride);
  for (const Jump& jump : jumps)
    place += static_cast<std::uint64_t>(k / jump.every) * static_cast<std::uint64_t>(jump.elements);
  return static_cast<std::int64_t>(place);
}

// Entry (r, c) lies place_of(r) + place_of(c) elements from `data`, where r and c are already divided and wrapped as
// the spread says. Strides count elements; 0 repeats, negative walks backwards.
struct Array {
  void* data = nullptr;
  Type type = Type::F32;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  Jumps row_jumps = {}, column_jumps = {};
  std::int64_t table_rows = 0;  // of a table whose rows an operand picks

  std::int64_t place(std::int64_t r, std::int64_t c) const {
    return place_of(r, row_stride, row_jumps) + place_of(c, column_stride, column_jumps);
  }
  // Of a packed type: the byte that holds it (elements.hpp).
  void* entry(std::int64_t r, std::int64_t c) const {
    const std::int64_t at = place(r, c);
    return static_cast<char*>(data) + (is_packed(type) ? at >> 1 : at * static_cast<std::int64_t>(bytes(type)));
  }
};

// What of an array's layout is fixed in the code; the strides and jumps themselves are arguments.
struct ArrayLayout {
  bool strided = false;  // columns do not lie side by side
  int row_jumps = 0, column_jumps = 0;
  bool backwards = false;  // instead of strided, in some kernels of simd machines: columns side by side, the last first
  bool covers(const ArrayLayout& other) const {
    return (strided || !other.strided) && row_jumps >= other.row_jumps && column_jumps >= other.column_jumps;
  }
  friend bool operator==(const ArrayLayout&, const ArrayLayout&) = default;
};

// `columns`: entries.
inline ArrayLayout layout_of(const Array& array, std::int64_t columns) {
  bool strided = columns > 1 && (array.column_stride != 1 || array.column_jumps.size() > 0);
  return {strided, array.row_jumps.size(), strided ? array.column_jumps.size() : 0};
}

// A program's operands and results, ready to run.
struct Problem2d {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const double> constants;  // one per operand of the program; those of operands in memory are ignored
  std::span<const Array> arrays;      // as Program::array counts them; those of constants are ignored
};

}  // namespace trireme
