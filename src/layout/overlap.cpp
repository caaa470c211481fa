#include "layout/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace trireme {
namespace {

// Pieces of `width` bytes at start + a * outer + b * inner for a < outer_count, b < inner_count. Steps are positive
// where there is more than one; columns that lie side by side are one piece.
struct Pieces {
  std::int64_t start = 0, width = 0;
  std::int64_t outer = 0, outer_count = 1, inner = 0, inner_count = 1;

  std::int64_t inner_width() const { return (inner_count - 1) * inner + width; }
  // Pieces come in order and are apart from each other.
  bool nested() const { return (inner_count == 1 || inner >= width) && (outer_count == 1 || outer >= inner_width()); }
};

Pieces pieces_of(const Extent& extent) {
  const Array& array = extent.array;
  auto size = static_cast<std::int64_t>(bytes(array.type));
  Pieces pieces{.start = reinterpret_cast<std::int64_t>(array.data), .width = size};
  auto axis = [&](std::int64_t count, std::int64_t stride) -> std::pair<std::int64_t, std::int64_t> {
    if (count <= 1 || stride == 0) return {1, 0};
    std::int64_t step = stride * size;
    if (step < 0) pieces.start += (count - 1) * step, step = -step;
    return {count, step};
  };
  std::tie(pieces.outer_count, pieces.outer) = axis(extent.rows, array.row_stride);
  std::tie(pieces.inner_count, pieces.inner) = axis(extent.columns, array.column_stride);
  bool swapped = pieces.inner_count > 1 && (pieces.outer_count == 1 || pieces.inner > pieces.outer);
  if (swapped) {
    std::swap(pieces.outer, pieces.inner);
    std::swap(pieces.outer_count, pieces.inner_count);
  }
  auto join_inner = [&] {
    if (pieces.inner_count > 1 && pieces.inner <= pieces.width) {
      pieces.width += (pieces.inner_count - 1) * pieces.inner;
      pieces.inner_count = 1, pieces.inner = 0;
    }
  };
  join_inner();
  if (pieces.inner_count == 1 && pieces.outer_count > 1 && pieces.outer <= pieces.width) {  // rows without gaps
    pieces.width += (pieces.outer_count - 1) * pieces.outer;
    pieces.outer_count = 1, pieces.outer = 0;
  }
  return pieces;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0)); }

// Does [low, high) meet one of `count` pieces of `width` bytes, `step` >= width apart, from 0 on? If so, between which.
bool meets(std::int64_t low, std::int64_t high, std::int64_t step, std::int64_t count, std::int64_t width,
           std::int64_t& first, std::int64_t& last) {
  if (count == 1) step = std::max(width, std::int64_t{1});
  first = std::max<std::int64_t>(floor_div(low - width, step) + 1, 0);
  last = std::min(floor_div(high - 1, step), count - 1);
  return first <= last;
}

// `pieces` nested.
bool meets(const Pieces& pieces, std::int64_t low, std::int64_t high) {
  low -= pieces.start, high -= pieces.start;
  std::int64_t first, last, inner_first, inner_last;
  if (!meets(low, high, pieces.outer, pieces.outer_count, pieces.inner_width(), first, last)) return false;
  if (last - first >= 2) return true;  // a whole outer step lies inside
  for (std::int64_t k = first; k <= last; ++k) {
    std::int64_t from = low - k * pieces.outer, to = high - k * pieces.outer;
    if (meets(from, to, pieces.inner, pieces.inner_count, pieces.width, inner_first, inner_last)) return true;
  }
  return false;
}

}  // namespace

ByteRange byte_range(const Extent& extent) {
  if (extent.rows <= 0 || extent.columns <= 0) return {};
  auto size = static_cast<std::int64_t>(bytes(extent.array.type));
  ByteRange range{0, size};
  for (std::int64_t reach :
       {(extent.rows - 1) * extent.array.row_stride * size, (extent.columns - 1) * extent.array.column_stride * size})
    (reach < 0 ? range.low : range.high) += reach;
  return range;
}

Overlap overlap(const Extent& a, const Extent& b) {
  ByteRange in_a = byte_range(a), in_b = byte_range(b);
  std::int64_t at_a = reinterpret_cast<std::int64_t>(a.array.data), at_b = reinterpret_cast<std::int64_t>(b.array.data);
  bool empty = in_a.low == in_a.high || in_b.low == in_b.high;
  if (empty || at_a + in_a.high <= at_b + in_b.low || at_b + in_b.high <= at_a + in_a.low) return Overlap::None;
  auto same_axis = [](std::int64_t count, std::int64_t x, std::int64_t y) { return count <= 1 || x == y; };
  if (at_a == at_b && bytes(a.array.type) == bytes(b.array.type) && a.rows == b.rows && a.columns == b.columns &&
      same_axis(a.rows, a.array.row_stride, b.array.row_stride) &&
      same_axis(a.columns, a.array.column_stride, b.array.column_stride))
    return Overlap::Identical;
  Pieces each = pieces_of(a), all = pieces_of(b);
  if (!all.nested()) std::swap(each, all);
  if (!all.nested()) return Overlap::Unknown;
  auto answer = [](bool met) { return met ? Overlap::Some : Overlap::None; };
  bool one_each = each.inner_count == 1 && all.inner_count == 1;
  if (one_each && each.outer == all.outer && each.outer_count > 1 && each.nested()) {
    // Piece a of one against piece b of the other depends on a - b alone.
    std::int64_t d = each.start - all.start, first, last;
    std::int64_t shift = (each.outer_count - 1) * each.outer;
    bool met = meets(d + shift, d + shift + each.width, all.outer, all.outer_count + each.outer_count - 1, all.width,
                     first, last);
    return answer(met);
  }
  for (std::int64_t r = 0; r < each.outer_count; ++r)
    for (std::int64_t c = 0; c < each.inner_count; ++c) {
      std::int64_t low = each.start + r * each.outer + c * each.inner;
      if (meets(all, low, low + each.width)) return Overlap::Some;
    }
  return Overlap::None;
}

bool overlaps_itself(const Extent& extent) {
  auto repeats = [](std::int64_t count, std::int64_t stride) { return count > 1 && stride == 0; };
  const Array& array = extent.array;
  if (extent.rows <= 0 || extent.columns <= 0) return false;
  if (repeats(extent.rows, array.row_stride) || repeats(extent.columns, array.column_stride)) return true;
  std::int64_t row = std::abs(array.row_stride), column = std::abs(array.column_stride);
  if (extent.rows <= 1 || extent.columns <= 1) return false;
  return row > column ? row < (extent.columns - 1) * column + 1 : column < (extent.rows - 1) * row + 1;
}

}  // namespace trireme
