#include "layout/overlap.hpp"

#include <algorithm>
#include <utility>

#include "layout/flatten.hpp"

namespace trireme {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && a < 0); }

// Pieces of `width` bytes, at `start` and from there on by any numbers of steps along each axis. Steps are positive;
// the largest come first. Bytes that lie side by side are one piece; those that lie on each other only if told so.
enum class Join : std::uint8_t { SideBySide, OnEachOtherToo };

struct Pieces {
  struct Axis {
    std::int64_t count = 1, step = 0;
    std::int64_t reach = 0;  // bytes from the first to beyond the last of all that lies inside of this axis
  };
  std::int64_t start = 0, width = 0;
  std::array<Axis, 2 * (max_jumps + 1)> axes;
  int rank = 0;

  Pieces(const Extent& extent, Join join) {
    const Array& array = extent.array;
    auto size = static_cast<std::int64_t>(bytes(array.type));
    start = reinterpret_cast<std::int64_t>(array.data);
    width = size;
    auto add = [&](const Steps& steps) {
      for (const Step& each : steps) {
        std::int64_t step = each.stride * size;
        if (step < 0) start += (each.count - 1) * step, step = -step;
        if (step != 0) axes[rank++] = {each.count, step};
      }
    };
    add(steps_of(extent.rows, array.row_stride, array.row_jumps));
    add(steps_of(extent.columns, array.column_stride, array.column_jumps));
    std::sort(axes.begin(), axes.begin() + rank, [](const Axis& a, const Axis& b) { return a.step > b.step; });
    while (rank > 0 && (join == Join::SideBySide ? axes[rank - 1].step == width : axes[rank - 1].step <= width)) {
      width += (axes[rank - 1].count - 1) * axes[rank - 1].step;
      --rank;
    }
    std::int64_t reach = width;
    for (int k = rank; k-- > 0; reach += (axes[k].count - 1) * axes[k].step) axes[k].reach = reach;
  }

  std::int64_t reach(int axis) const {  // of this axis and all inside
    return axis == rank ? width : axes[axis].reach + (axes[axis].count - 1) * axes[axis].step;
  }
};

constexpr int most_steps = 1 << 20;

// Looks for two pieces that meet, going inwards axis by axis, and only where what lies inside can meet.
class Search {
 public:
  // Do a's pieces from axis `in_a` inwards, `apart` bytes before those of b from `in_b` inwards, meet them?
  bool meet(const Pieces& a, int in_a, const Pieces& b, int in_b, std::int64_t apart) {
    if (apart >= a.reach(in_a) || -apart >= b.reach(in_b) || ++steps_ > most_steps) return steps_ > most_steps;
    if (in_a == a.rank && in_b == b.rank) return true;
    bool outer_a = in_b == b.rank || (in_a < a.rank && a.axes[in_a].step > b.axes[in_b].step);
    bool outer_b = in_a == a.rank || (in_b < b.rank && b.axes[in_b].step > a.axes[in_a].step);
    if (outer_a)
      return moved(a.axes[in_a], apart, a.axes[in_a].count, 1, b.reach(in_b),
                   [&](std::int64_t further) { return meet(a, in_a + 1, b, in_b, further); });
    if (outer_b)
      return moved(b.axes[in_b], -apart, b.axes[in_b].count, 1, a.reach(in_a),
                   [&](std::int64_t further) { return meet(a, in_a, b, in_b + 1, -further); });
    // Step number k of a against step number m of b: only k - m matters.
    return moved(a.axes[in_a], apart, a.axes[in_a].count, b.axes[in_b].count, b.reach(in_b + 1),
                 [&](std::int64_t further) { return meet(a, in_a + 1, b, in_b + 1, further); });
  }

  // Do two different pieces of `a` meet, `apart` bytes being between their places so far?
  bool meet_itself(const Pieces& a, int axis, std::int64_t apart, bool different) {
    if (std::abs(apart) >= a.reach(axis) || ++steps_ > most_steps) return steps_ > most_steps;
    if (axis == a.rank) return different;
    return moved(
        a.axes[axis], apart, a.axes[axis].count, a.axes[axis].count, a.axes[axis].reach,
        [&](std::int64_t further) { return meet_itself(a, axis + 1, further, different || further != apart); });
  }

  bool gave_up() const { return steps_ > most_steps; }

 private:
  // try_at(apart - k * step) for -before < k < after, where what is inside of the axis can meet `reach` bytes.
  template <typename Try>
  static bool moved(const Pieces::Axis& axis, std::int64_t apart, std::int64_t after, std::int64_t before,
                    std::int64_t reach, Try&& try_at) {
    std::int64_t first = std::max(floor_div(apart - axis.reach, axis.step) + 1, 1 - before);
    std::int64_t last = std::min(floor_div(apart + reach - 1, axis.step), after - 1);
    for (std::int64_t k = first; k <= last; ++k)
      if (try_at(apart - k * axis.step)) return true;
    return false;
  }

  int steps_ = 0;
};

}  // namespace

std::optional<ByteRange> checked_byte_range(const Extent& extent) {
  if (extent.rows <= 0 || extent.columns <= 0) return ByteRange{};
  constexpr std::int64_t most = std::int64_t{1} << 61;
  auto size = static_cast<std::int64_t>(bytes(extent.array.type));
  ByteRange range{0, size};
  bool fits = true;
  auto add = [&](const Steps& steps) {
    for (const Step& each : steps) {
      std::int64_t far = 0;
      fits = fits && !__builtin_mul_overflow(each.count - 1, each.stride, &far) &&
             !__builtin_mul_overflow(far, size, &far) && far <= most && far >= -most;
      if (fits) (far < 0 ? range.low : range.high) += far;
      fits = fits && range.high <= most && range.low >= -most;
    }
  };
  add(steps_of(extent.rows, extent.array.row_stride, extent.array.row_jumps));
  add(steps_of(extent.columns, extent.array.column_stride, extent.array.column_jumps));
  return fits ? std::optional(range) : std::nullopt;
}

ByteRange byte_range(const Extent& extent) { return checked_byte_range(extent).value_or(ByteRange{}); }

Overlap overlap(const Extent& a, const Extent& b) {
  ByteRange in_a = byte_range(a), in_b = byte_range(b);
  std::int64_t at_a = reinterpret_cast<std::int64_t>(a.array.data), at_b = reinterpret_cast<std::int64_t>(b.array.data);
  bool empty = in_a.low == in_a.high || in_b.low == in_b.high;
  if (empty || at_a + in_a.high <= at_b + in_b.low || at_b + in_b.high <= at_a + in_a.low) return Overlap::None;
  auto same_axis = [](std::int64_t count, std::int64_t x, std::int64_t y, const Jumps& x_jumps, const Jumps& y_jumps) {
    return count <= 1 || (x == y && x_jumps == y_jumps);
  };
  if (at_a == at_b && bytes(a.array.type) == bytes(b.array.type) && a.rows == b.rows && a.columns == b.columns &&
      same_axis(a.rows, a.array.row_stride, b.array.row_stride, a.array.row_jumps, b.array.row_jumps) &&
      same_axis(a.columns, a.array.column_stride, b.array.column_stride, a.array.column_jumps, b.array.column_jumps))
    return Overlap::Identical;
  Pieces in(a, Join::OnEachOtherToo), of(b, Join::OnEachOtherToo);
  Search search;
  bool met = search.meet(in, 0, of, 0, of.start - in.start);
  return search.gave_up() ? Overlap::Unknown : met ? Overlap::Some : Overlap::None;
}

bool overlaps_itself(const Extent& extent) {
  if (extent.rows <= 0 || extent.columns <= 0) return false;
  auto repeats = [](const Steps& steps) {
    return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.stride == 0; });
  };
  const Array& array = extent.array;
  if (repeats(steps_of(extent.rows, array.row_stride, array.row_jumps)) ||
      repeats(steps_of(extent.columns, array.column_stride, array.column_jumps)))
    return true;
  return Search().meet_itself(Pieces(extent, Join::SideBySide), 0, 0, false);
}

}  // namespace trireme
