// Sums (or largest, or smallest) of many values in neighbouring pairs, level by level, one that is left over moving up:
// the contract's order of stripes and of row blocks, for any number of them in a few registers.
#pragma once
#include <bit>
#include <utility>
#include <vector>

#include "schedule/nodes.hpp"

namespace trireme {

// Several sums at a time, of values that come one after the other: a binary counter whose level l holds the sum of 2^l
// of them. `levels`: fewer than 2^levels values come. `count`: so many came.
class PairStack {
 public:
  PairStack(KernelBuilder& builder, Reg zero, int levels, Op op, std::size_t sums = 1)
      : b_(builder), zero_(zero), op_(op), held_(levels) {
    for (auto& level : held_)
      for (std::size_t s = 0; s < sums; ++s) level.push_back(b_.number(identity_of(op_)));
  }

  // The next value of each sum, whose registers are used up. The caller then increases the count.
  void push(const std::vector<Reg>& values, Reg count) { push_from(0, values, count); }

  // `totals`: what is left over, or the identity.
  void add_held(const std::vector<Reg>& totals, Reg count) {
    for (std::size_t l = 0; l < held_.size(); ++l) b_.when_less(zero_, bit(count, l), [&] { add(held_[l], totals); });
  }

 private:
  Reg bit(Reg count, std::size_t l) { return b_.index(Do::IndexAnd, count, std::int64_t{1} << l); }

  void add(const std::vector<Reg>& earlier, const std::vector<Reg>& sums) {
    for (std::size_t s = 0; s < sums.size(); ++s)
      b_.emit({.code = Do::Primitive, .op = combination_of(op_), .dst = sums[s], .a = earlier[s], .b = sums[s]});
  }

  void push_from(std::size_t l, const std::vector<Reg>& carry, Reg count) {
    if (l == held_.size()) return;
    b_.when_less(
        zero_, bit(count, l),
        [&] {
          add(held_[l], carry);
          push_from(l + 1, carry, count);
        },
        [&] {
          for (std::size_t s = 0; s < carry.size(); ++s) b_.assign(held_[l][s], carry[s]);
        });
  }

  KernelBuilder& b_;
  Reg zero_;
  Op op_;
  std::vector<std::vector<Reg>> held_;  // [level][sum]
};

// In loops, where the `count` values lie: `load(k)` is the register of number k, and `store(k, sum)` writes it. The
// first is then the sum of all; `count` is used up.
template <typename Load, typename Store>
void pair_in_place(KernelBuilder& b, Op op, Reg zero, Reg one, Reg count, Load&& load, Store&& store) {
  b.repeat_while_less(one, count, [&] {
    Reg from = b.copy(zero), to = b.copy(zero);
    b.repeat_while_less(from, count, [&] {
      const Reg sum = load(from), right = b.add(from, 1);
      b.when_less(right, count, [&] {
        b.emit({.code = Do::Primitive, .op = combination_of(op), .dst = sum, .a = sum, .b = load(right)});
      });
      store(to, sum);
      b.increase(from, 2);
      b.increase(to, 1);
    });
    b.assign(count, to);
  });
}

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

  // Values from .. to; `value(k, dst)` makes one. Units are trees. A sum of nothing is the identity.
  template <typename Value>
  Reg sum(Reg from, Reg to, Value&& value) {
    PairStack stack(b_, zero_, levels_, op_);
    Reg k = b_.copy(from), units = b_.copy(zero_), full = b_.index(Do::IndexSub, to, unit - 1);
    b_.repeat_while_less(k, full, [&] {
      std::vector<Reg> values;
      for (int e = 0; e < unit; ++e) {
        values.push_back(b_.fresh(Bank::Lane));
        value(b_.add(k, e), values.back());
      }
      Reg carry = b_.fresh(Bank::Lane);
      b_.assign(carry, tree(values));
      stack.push({carry}, units);
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
    stack.add_held({total}, units);
    return total;
  }

  // The same of up to 2^levels values that are much code: it stands here once.
  template <typename Value>
  Reg sum_one_by_one(Reg from, Reg to, Value&& value) {
    PairStack stack(b_, zero_, levels_, op_);
    Reg k = b_.copy(from), count = b_.copy(zero_);
    b_.repeat_while_less(k, to, [&] {
      Reg carry = b_.fresh(Bank::Lane);
      b_.assign(carry, value(k));
      stack.push({carry}, count);
      b_.increase(k, 1);
      b_.increase(count, 1);
    });
    Reg total = b_.number(identity_of(op_));
    stack.add_held({total}, count);
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
  KernelBuilder& b_;
  Reg zero_;
  int levels_;
  Op op_;
};

}  // namespace trireme
