#include "label_layout.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::cli {

// Boxes along the line, small enough that those of a slanted one leave its corners free.
void LabelLayout::keep_clear_of_line(double x1, double y1, double x2, double y2) {
  constexpr double step = 4;
  const int count = 1 + static_cast<int>(std::hypot(x2 - x1, y2 - y1) / step);
  for (int k = 0; k <= count; ++k) {
    const double x = x1 + (x2 - x1) * k / count, y = y1 + (y2 - y1) * k / count;
    taken_.push_back({x - step / 2, y - step / 2, x + step / 2, y + step / 2});
  }
}

std::optional<Box> LabelLayout::place(double x, double y, double width, double height) {
  constexpr double gaps[] = {9, 16, 26, 40, 58};  // pixels; the first leaves room for the point itself
  for (double gap : gaps) {
    const double right = x + gap, left = x - gap - width, above = y - gap - height, below = y + gap;
    const double beside = y - height / 2, centred = x - width / 2;
    const struct {
      double left, top;
    } corners[] = {{right, beside}, {left, beside}, {centred, above}, {centred, below},
                   {right, above},  {right, below}, {left, above},    {left, below}};
    for (const auto& corner : corners) {
      const Box box{corner.left, corner.top, corner.left + width, corner.top + height};
      if (!frame_.holds(box) || std::any_of(taken_.begin(), taken_.end(), [&](const Box& b) { return b.meets(box); }))
        continue;
      taken_.push_back(box);
      return box;
    }
  }
  return std::nullopt;
}

}  // namespace trireme::cli
