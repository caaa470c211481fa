// Sums (or largest, or smallest) of many values in neighbouring pairs, level by level, one that is left over moving up:
// the contract's order of stripes and of row blocks, for any number of them in a few registers.
#pragma once
#include <bit>
#include <utility>
#include <vector>

#include "schedule/nodes.hpp"

namespace trireme {

class PairSums {
 public:
  static constexpr int unit = 8;  // values added as one tree

  // `levels`: the sum of up to unit * 2^levels values fits.
  PairSums(KernelBuilder& builder, Reg zero, int levels, Op op = Op::Sum)
      : b_(builder), zero_(zero), levels_(levels), op_(op) {}

  // A power of two of values.
  Reg tree(std::vector<Reg> values) {
    for (; values.size() > 1; values.resize(values.size() / 2))
      for (std::size_t e = 0; e < values.size() / 2; ++e)
        values[e] = combine(b_, op_, values[2 * e], values[2 * e + 1]);
    return values[0];
  }

  // Values from .. to; `value(k, dst)` makes one. Units are trees, and go into a binary counter whose level l holds the
  // sum of 2^l of them. A sum of nothing is the identity.
  template <typename Value>
  Reg sum(Reg from, Reg to, Value&& value) {
    std::vector<Reg> held;
    for (int l = 0; l < levels_; ++l) held.push_back(b_.number(identity_of(op_)));
    Reg k = b_.copy(from), units = b_.copy(zero_), full = b_.index(Do::IndexSub, to, unit - 1);
    b_.repeat_while_less(k, full, [&] {
      std::vector<Reg> values;
      for (int e = 0; e < unit; ++e) {
        values.push_back(b_.fresh(Bank::Lane));
        value(b_.add(k, e), values.back());
      }
      Reg carry = b_.fresh(Bank::Lane);
      b_.assign(carry, tree(values));
      push(held, 0, carry, units);
      b_.increase(k, unit);
      b_.increase(units, 1);
    });
    // What is left makes one more unit, filled up with the identity.
    std::vector<Reg> values;
    for (int e = 0; e < unit; ++e) {
      values.push_back(b_.number(identity_of(op_)));
      Reg which = b_.add(k, e);
      b_.when_less(which, to, [&] { value(which, values.back()); });
    }
    Reg total = b_.fresh(Bank::Lane);
    b_.assign(total, tree(values));
    add_held(held, units, total);
    return total;
  }

  // The same of up to 2^levels values that are much code: it stands here once.
  template <typename Value>
  Reg sum_one_by_one(Reg from, Reg to, Value&& value) {
    std::vector<Reg> held;
    for (int l = 0; l < levels_; ++l) held.push_back(b_.number(identity_of(op_)));
    Reg k = b_.copy(from), count = b_.copy(zero_);
    b_.repeat_while_less(k, to, [&] {
      Reg carry = b_.fresh(Bank::Lane);
      b_.assign(carry, value(k));
      push(held, 0, carry, count);
      b_.increase(k, 1);
      b_.increase(count, 1);
    });
    Reg total = b_.number(identity_of(op_));
    add_held(held, count, total);
    return total;
  }

  // What is stored for a sum of nothing is +0.0; for the largest of nothing it is what has come out.
  void settle_empty(Reg count, Reg total) {
    if (op_ != Op::Sum) return;
    b_.when_less(
        zero_, count, [] {},
        [&] { b_.emit({.code = Do::LaneConstant, .dst = total, .imm = std::bit_cast<std::int64_t>(0.0)}); });
  }

 private:
  void add_held(const std::vector<Reg>& held, Reg units, Reg total) {
    for (int l = 0; l < levels_; ++l)
      b_.when_less(zero_, b_.index(Do::IndexAnd, units, std::int64_t{1} << l), [&] {
        b_.emit({.code = Do::Primitive, .op = combination_of(op_), .dst = total, .a = held[l], .b = total});
      });
  }

  void push(const std::vector<Reg>& held, std::size_t l, Reg carry, Reg units) {
    if (l == held.size()) return;
    b_.when_less(
        zero_, b_.index(Do::IndexAnd, units, std::int64_t{1} << l),
        [&] {
          b_.emit({.code = Do::Primitive, .op = combination_of(op_), .dst = carry, .a = held[l], .b = carry});
          push(held, l + 1, carry, units);
        },
        [&] { b_.assign(held[l], carry); });
  }

  KernelBuilder& b_;
  Reg zero_;
  int levels_;
  Op op_;
};

}  // namespace trireme
