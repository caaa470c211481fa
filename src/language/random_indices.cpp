#include "language/random_indices.hpp"

namespace trireme {

NodeId RandomIndices::count() {
  if (counts_.empty()) return number(1 + static_cast<std::int64_t>(dice_.below(6)));
  return program_.add(Op::Constant, {}, static_cast<std::int64_t>(dice_.one_of(counts_)));
}

std::int64_t RandomIndices::part_of_columns() {
  std::vector<std::int64_t> parts;
  for (std::int64_t part = 1; part <= multiple_; ++part)
    if (multiple_ % part == 0) parts.push_back(part);
  return parts[dice_.below(parts.size())];
}

NodeId RandomIndices::quotient() {
  switch (dice_.below(4)) {
    case 0: return add(Op::Div, {number(60), count()});
    case 1: return add(Op::Div, {add(Op::Div, {number(12), number(2)}), number(3)});
    case 2: return add(Op::Div, {columns(), columns()});
    default: return add(Op::Div, {columns(), number(part_of_columns())});
  }
}

// Positive, as counts are at most 60.
NodeId RandomIndices::positive() {
  switch (dice_.below(5)) {
    case 0: return add(Op::Mul, {count(), number(1 + static_cast<std::int64_t>(dice_.below(4)))});
    case 1: return add(Op::Add, {count(), number(static_cast<std::int64_t>(dice_.below(4)))});
    case 2: return add(Op::Sub, {number(61), count()});
    case 3: return add(Op::Neg, {add(Op::Sub, {number(-7), count()})});
    default: return add(Op::Add, {quotient(), count()});
  }
}

NodeId RandomIndices::divisor() {
  switch (dice_.below(7)) {
    case 0: return columns();
    case 1: return quotient();
    case 2: return positive();
    case 3:
    case 4: return count();
    default: return number(1 + static_cast<std::int64_t>(dice_.below(6)));
  }
}

Axis RandomIndices::axis(bool divided) {
  Axis axis{.present = true};
  if (divided && dice_.one_in(2)) axis.divide = divisor();
  if (divided && dice_.one_in(2)) axis.wrap = divisor();
  return axis;
}

// Products have one factor that is small, so that no step comes near 2^53.
NodeId RandomIndices::amount(int depth) {
  switch (dice_.below(depth > 0 ? 9 : 3)) {
    case 0: return columns();
    case 1: return count();
    case 2: return number(static_cast<std::int64_t>(dice_.below(15)) - 7);
    case 3: return add(Op::Add, {amount(depth - 1), amount(depth - 1)});
    case 4: return add(Op::Sub, {amount(depth - 1), amount(depth - 1)});
    case 5: return add(Op::Mul, {amount(depth - 1), amount(0)});
    case 6: return add(Op::Neg, {amount(depth - 1)});
    default: return whole_quotient(depth - 1);
  }
}

NodeId RandomIndices::whole_quotient(int depth) {
  NodeId part = number(part_of_columns());
  switch (dice_.below(5)) {
    case 0: return add(Op::Div, {add(Op::Neg, {columns()}), part});
    case 1: return add(Op::Div, {add(Op::Mul, {amount(0), columns()}), part});
    case 2: return add(Op::Div, {add(Op::Mul, {amount(depth), columns()}), columns()});
    case 3: {
      NodeId by = dice_.one_in(2) ? number(-3) : count();
      return add(Op::Div, {add(Op::Mul, {by, amount(depth)}), by});
    }
    default: return add(Op::Div, {columns(), part});
  }
}

// Mostly sizes that kernels care for, and some that they do not.
NodeId RandomIndices::group() {
  constexpr std::int64_t sizes[] = {1, 2, 3, 4, 5, 8, 12, 16, 32, 64, 100, 128, 256, 300};
  if (dice_.one_in(4)) return divisor();
  return number(dice_.one_of(sizes));
}

// Simple ones half of the time: numbers, n, and n less or more than a number.
NodeId RandomIndices::rotation() {
  return amount(static_cast<int>(dice_.one_in(2) ? dice_.below(2) : 1 + dice_.below(3)));
}

}  // namespace trireme
