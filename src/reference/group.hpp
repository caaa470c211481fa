// Reductions inside groups of columns and over groups (ir/groups.hpp), literally: a group's columns, in order, are a
// row of their own; and so are the first columns of all groups, where their values are found.
#pragma once
#include <algorithm>
#include <vector>

#include "ir/groups.hpp"
#include "reference/row_sum.hpp"

namespace trireme {

template <typename Value>
Value reduced(Op op, const std::vector<Value>& row) {
  if (op == Op::Sum) return row_sum<Value>(row);
  Value best = row[0];
  for (std::size_t k = 1; k < row.size(); ++k) best = op == Op::Amax ? larger(best, row[k]) : smaller(best, row[k]);
  return best;
}

// `by`: what j is divided or wrapped by. `out` has a value a column, or of entries one.
template <typename Value>
void reduce_groups(const GroupReduction& kind, std::int64_t by, const std::vector<Value>& elements,
                   std::vector<Value>& out) {
  const auto n = static_cast<std::int64_t>(elements.size());
  const std::int64_t groups = group_count(n, by, kind.wraps);
  std::vector<Value> row;
  if (kind.entries) {
    for (std::int64_t k = 0; k < groups; ++k) row.push_back(elements[first_column(k, by, kind.wraps)]);
    out[0] = reduced(kind.op, row);
    return;
  }
  for (std::int64_t k = 0; k < groups; ++k) {
    const std::int64_t first = first_column(k, by, kind.wraps), step = kind.wraps ? by : 1;
    const std::int64_t end = kind.wraps ? n : std::min(n, first + by);
    row.clear();
    for (std::int64_t j = first; j < end; j += step) row.push_back(elements[j]);
    const Value value = reduced(kind.op, row);
    for (std::int64_t j = first; j < end; j += step) out[j] = value;
  }
}

}  // namespace trireme
