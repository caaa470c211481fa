// Views of any rank as rows and columns.
#pragma once
#include <string>

#include "layout/array.hpp"
#include "layout/indexing.hpp"
#include "trireme/view.hpp"

namespace trireme {

// Several axes taken as one: those that join have one stride, each other one adds a jump.
struct FlatAxes {
  std::int64_t stride = 1;
  Jumps jumps = {};
  friend bool operator==(const FlatAxes&, const FlatAxes&) = default;
};

// Axes of one entry have no say; no axes at all, or no entries, are contiguous.
FlatAxes flatten(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides);

// The other way: axes that flatten to this, innermost first, none of one entry.
struct Step {
  std::int64_t count = 1, stride = 0;
};
struct Steps {
  std::array<Step, max_jumps + 1> steps;
  int count = 0;
  const Step* begin() const { return steps.data(); }
  const Step* end() const { return steps.data() + count; }
};
Steps steps_of(std::int64_t count, std::int64_t stride, const Jumps& jumps);

Dims contiguous_strides(const Dims& shape);

// The axes of an array of a problem: those of its rows, those of its columns. A divided or wrapped index is one axis.
struct ArrayAxes {
  Dims rows, columns;
  Dims all() const;
};
// `table_rows`: of an array whose rows an operand picks; less than 0: as many as the problem has.
ArrayAxes axes_of(const Indexing& indexing, const Dims& shape, int normalised, std::int64_t table_rows = -1);

// `strides` has one for each axis.
Array placed(Type type, const Indexing& indexing, const ArrayAxes& axes, const Dims& strides);

std::string print(const Dims& dims);             // "8x2048x4096"; "scalar" for none
std::string print_strides(const Dims& strides);  // "(4096, 1)"

}  // namespace trireme
