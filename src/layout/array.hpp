// An operand or result in memory, as kernels see it.
#pragma once
#include <cstdint>
#include <span>

#include "trireme/type.hpp"

namespace trireme {

// Entry (r, c) lies at data + (r * row_stride + c * column_stride) * bytes(type), where r and c are already divided and
// wrapped as the spread says. Strides count elements; 0 repeats, negative walks backwards.
struct Array {
  void* data = nullptr;
  Type type = Type::F32;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  void* entry(std::int64_t r, std::int64_t c) const {
    return static_cast<char*>(data) + (r * row_stride + c * column_stride) * static_cast<std::int64_t>(bytes(type));
  }
};

// A program's operands and results, ready to run.
struct Problem2d {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const double> constants;  // one per operand of the program; those of operands in memory are ignored
  std::span<const Array> operands;    // one per operand of the program; those of constants are ignored
  std::span<const Array> results;     // one per result
};

}  // namespace trireme
