#include "layout/flatten.hpp"

#include <algorithm>

namespace trireme {

namespace {

// Differences and products of strides may wrap; so do the places made of them (array.hpp).
std::int64_t wrapping_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

FlatAxes flatten(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
  FlatAxes flat;
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return flat;
  std::int64_t every = 1, joined = 0;  // entries so far; the stride an axis must have to join
  for (std::size_t k = extents.size(); k-- > 0;) {
    if (extents[k] == 1) continue;
    if (every == 1) flat.stride = strides[k];
    else if (strides[k] != joined)
      flat.jumps.push_back({every, wrapping_sum(strides[k], wrapping_product(-1, joined))});
    joined = wrapping_product(strides[k], extents[k]);
    every *= extents[k];
  }
  return flat;
}

Steps steps_of(std::int64_t count, std::int64_t stride, const Jumps& jumps) {
  Steps steps;
  std::int64_t before = 1;
  auto add = [&](std::int64_t entries) {
    if (entries > 1) steps.steps[steps.count++] = {entries, stride};
  };
  for (const Jump& jump : jumps) {
    add(jump.every / before);
    stride = wrapping_sum(wrapping_product(stride, jump.every / before), jump.elements);
    before = jump.every;
  }
  add(count / before);
  return steps;
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

Dims ArrayAxes::all() const {
  Dims all = rows;
  for (std::int64_t extent : columns) all.push_back(extent);
  return all;
}

ArrayAxes axes_of(const Indexing& indexing, const Dims& shape, int normalised, std::int64_t table_rows) {
  ArrayAxes axes;
  std::size_t outer = shape.size() - static_cast<std::size_t>(normalised);
  std::int64_t rows = 1, columns = 1;
  for (std::size_t k = 0; k < shape.size(); ++k) (k < outer ? rows : columns) *= shape[k];
  if (indexing.row.picked) axes.rows = {table_rows >= 0 ? table_rows : std::max<std::int64_t>(rows, 1)};
  else if (indexing.row.present && !indexing.row.plain()) axes.rows = {indexing.row.extent(rows)};
  if (indexing.row.present && indexing.row.plain()) axes.rows = Dims(std::span(shape.begin(), outer));
  if (indexing.column.present && !indexing.column.plain()) axes.columns = {indexing.column.extent(columns)};
  if (indexing.column.present && indexing.column.plain())
    axes.columns = Dims(std::span(shape.begin() + outer, shape.size() - outer));
  return axes;
}

Array placed(Type type, const Indexing& indexing, const ArrayAxes& axes, const Dims& strides) {
  std::size_t outer = axes.rows.size(), inner = axes.columns.size();
  FlatAxes rows = flatten({axes.rows.begin(), outer}, {strides.begin(), outer});
  FlatAxes columns = flatten({axes.columns.begin(), inner}, {strides.begin() + outer, inner});
  Array array{.type = type};
  if (indexing.row.picked && outer == 1) array.table_rows = axes.rows[0];
  if (indexing.row.present) array.row_stride = rows.stride, array.row_jumps = rows.jumps;
  if (indexing.column.present) array.column_stride = columns.stride, array.column_jumps = columns.jumps;
  return array;
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
