// Groups of columns: those that share j / g (neighbours) or j % g (every g-th).
//
// `sum(e, j / g)` reduces e, spread to columns, inside each group; its value is spread [i, j / g]. `sum(entries(e))`
// runs once over each group's value. Both are Op::Group: args are the value and g, and the payload says the rest, so
// that a reduction's domain is what its text said whatever passes make of its argument. A group's columns, in order,
// are a row of their own; so are the entries, in order. An entry is a group that has columns: of j % g there are
// min(g, n).
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "ir/program.hpp"

namespace trireme {

struct GroupReduction {
  Op op = Op::Sum;       // Sum, Amax, Amin or Mean
  bool wraps = false;    // j % g, or j / g
  bool entries = false;  // over the groups' values, or over columns inside each group
};

inline constexpr std::array<Op, 4> group_ops = {Op::Sum, Op::Amax, Op::Amin, Op::Mean};
inline constexpr std::int64_t group_payloads = 16;

constexpr std::int64_t payload_of(const GroupReduction& group) {
  std::int64_t which = 0;
  while (group_ops[static_cast<std::size_t>(which)] != group.op) ++which;
  return which + 4 * group.wraps + 8 * group.entries;
}
constexpr GroupReduction group_of(std::int64_t payload) {
  return {group_ops[static_cast<std::size_t>(payload & 3)], (payload & 4) != 0, (payload & 8) != 0};
}
constexpr GroupReduction group_of(const Node& node) { return group_of(node.payload); }

inline NodeId add_group(Program& program, const GroupReduction& group, NodeId value, NodeId divisor) {
  return program.add(Op::Group, {value, divisor}, payload_of(group));
}

// j / g or j % g, and not both.
constexpr bool is_group(const Axis& axis) {
  return axis.present && !axis.picked() && (axis.divide != no_node) != (axis.wrap != no_node);
}

// A result of each row's own whose columns are groups: [i, j / g], [i, j % g]. It takes a value of that spread, or a
// colsum or colmax.
constexpr bool is_of_groups(const Spread& spread) {
  return spread.row.present && spread.row.plain() && is_group(spread.column);
}

// Results spread so take `colsum(e)` or `colmax(e)` and nothing else.
constexpr bool needs_column_sum(const Spread& spread) { return takes_column_sum(spread) && !is_of_groups(spread); }

// How a value is spread along its row: one value, one a group, or one an element. Two groups are the same only if their
// index expressions are.
struct ColumnSpread {
  enum class Kind : std::uint8_t { One, Group, Element };
  Kind kind = Kind::One;
  bool wraps = false;   // of a group
  NodeId by = no_node;  // of a group: what j is divided or wrapped by
  bool operator==(const ColumnSpread&) const = default;
  constexpr bool is_one() const { return kind == Kind::One; }
  constexpr bool is_group() const { return kind == Kind::Group; }
  constexpr bool is_element() const { return kind == Kind::Element; }
};

ColumnSpread spread_of(const Axis& axis);
ColumnSpread joined(const ColumnSpread& a, const ColumnSpread& b);
// Can a value of the one spread stand where the other is wanted?
constexpr bool fits(const ColumnSpread& value, const ColumnSpread& wanted) {
  return value.is_one() || wanted.is_element() || value == wanted;
}

// Those of a program's nodes, looked at as far as somebody asks. The signature's indices are complete.
class ColumnSpreads {
 public:
  explicit ColumnSpreads(const Program& program) : program_(&program) {}
  ColumnSpread operator[](NodeId id);

 private:
  const Program* program_;
  std::vector<ColumnSpread> known_;
};

// The first column of a group, in which its value is found.
constexpr std::int64_t first_column(std::int64_t entry, std::int64_t by, bool wraps) {
  return wraps ? entry : entry * by;
}
constexpr std::int64_t group_count(std::int64_t columns, std::int64_t by, bool wraps) {
  return wraps ? (by < columns ? by : columns) : (columns + by - 1) / by;
}

}  // namespace trireme
