// Where labels go in a picture: beside what they name, inside the frame, and over nothing else.
#pragma once
#include <optional>
#include <vector>

namespace trireme::cli {

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool holds(const Box& other) const {
    return left <= other.left && other.right <= right && top <= other.top && other.bottom <= bottom;
  }
};

class LabelLayout {
 public:
  explicit LabelLayout(const Box& frame) : frame_(frame) {}
  void keep_clear(const Box& box) { taken_.push_back(box); }
  void keep_clear_of_line(double x1, double y1, double x2, double y2);

  // The nearest free place for a label of this size that names (x, y), which is then taken; nothing if there is none
  // near by.
  std::optional<Box> place(double x, double y, double width, double height);

 private:
  Box frame_;
  std::vector<Box> taken_;
};

}  // namespace trireme::cli
