// Views of any rank as rows and columns.
#pragma once
#include <optional>
#include <string>

#include "trireme/view.hpp"

namespace trireme {

// The stride of several axes taken as one; nothing where their strides forbid that. Axes of one entry have no say; no
// axes at all, or no entries, are contiguous.
std::optional<std::int64_t> flat_stride(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides);

Dims contiguous_strides(const Dims& shape);

std::string print(const Dims& dims);             // "8x2048x4096"; "scalar" for none
std::string print_strides(const Dims& strides);  // "(4096, 1)"

}  // namespace trireme
