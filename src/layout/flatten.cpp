#include "layout/flatten.hpp"

#include <algorithm>

namespace trireme {

std::optional<std::int64_t> flat_stride(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
  std::int64_t innermost = 1, next = 0;  // next: what the next axis out must have
  bool found = false, fits = true;
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 1;
  for (std::size_t k = extents.size(); k-- > 0;) {
    if (extents[k] == 1) continue;
    if (found && (!fits || strides[k] != next)) return std::nullopt;
    if (!found) innermost = strides[k];
    found = true;
    fits = !__builtin_mul_overflow(strides[k], extents[k], &next);
  }
  return innermost;
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides = shape;
  std::int64_t stride = 1;
  for (std::size_t k = shape.size(); k-- > 0;) {
    strides[k] = stride;
    stride *= std::max<std::int64_t>(shape[k], 1);
  }
  return strides;
}

std::string print(const Dims& dims) {
  std::string text;
  for (std::int64_t extent : dims) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

std::string print_strides(const Dims& strides) {
  std::string text;
  for (std::int64_t stride : strides) text += (text.empty() ? "" : ", ") + std::to_string(stride);
  return "(" + text + ")";
}

}  // namespace trireme
