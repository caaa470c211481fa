#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/build.hpp"
#include "passes/passes.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {
namespace {

const double inf = std::numeric_limits<double>::infinity();

// A bound program with one operand of each spread, to write expressions over.
struct Simplify : testing::Test {
  Program program;
  Formula x, y, r, k;

  Simplify() { use(Type::F32); }

  void use(Type compute) {
    program = Program();
    program.name = "f";
    program.compute = compute;
    x = operand("x", true, true, Type::F16);
    y = operand("y", true, true, compute);
    r = operand("r", true, false, compute);
    program.operands.push_back({.name = "k", .constant = true});
    k = {&program, program.add(Op::Constant, {}, 3)};
  }
  Formula operand(std::string name, bool row, bool column, Type type) {
    Spread spread;
    spread.row.present = row, spread.column.present = column;
    program.operands.push_back({.name = std::move(name), .spread = spread, .type = type});
    return {&program, program.add(Op::Operand, {}, static_cast<std::int64_t>(program.operands.size()) - 1)};
  }
  Formula number(double value) { return x.number(value); }
  Formula rounded(Formula e, Type type) { return e.with(Op::RoundTo, {e.id}, static_cast<std::int64_t>(type)); }
  Formula negated(Formula c) { return c.with(Op::Not, {c.id}); }

  Program simplified(std::initializer_list<Formula> values) {
    Spread element;
    element.row.present = element.column.present = true;
    program.results.clear();
    for (Formula value : values) program.results.push_back({.name = "z", .spread = element, .value = value.id});
    return simplify(program);
  }
  static std::size_t nodes(const Program& p) {
    std::vector<bool> wanted = reachable(p);
    return static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), true));
  }

  void check(Formula before, Formula after) {
    Program both = simplified({before, after}), one = simplified({after});
    EXPECT_EQ(both.results[0].value, both.results[1].value);
    EXPECT_EQ(both[both.results[0].value].op, program[after.id].op);
    EXPECT_EQ(nodes(one), nodes(both));
  }
  // Nothing happens to it.
  void kept(Formula e) {
    Program after = simplified({e});
    EXPECT_EQ(after[after.results[0].value].op, program[e.id].op);
    EXPECT_EQ(nodes(after), nodes(program));
  }
  void folds(Formula e, double value) {
    Program after = simplified({e});
    ASSERT_EQ(after[after.results[0].value].op, Op::Number);
    EXPECT_EQ(after[after.results[0].value].number(), value);
  }
};

TEST_F(Simplify, Identities) {
  check(x * 1.0, x);
  check(1.0 * x, x);
  check(x / 1.0, x);
  check(x * -1.0, -x);
  check(x / -1.0, -x);
  check(-(x * -1.0) / 1.0, x);
}

TEST_F(Simplify, Negation) {
  check(-(-x), x);
  check(x + -y, x - y);
  check(-x + y, y - x);
  check(x - -y, x + y);
  check(-x * -y, x * y);
  check(-x / -y, x / y);
  check(x + y * -1.0, x - y);
}

TEST_F(Simplify, Powers) {
  check(x / 4.0, x * 0.25);
  check(x / 0.5, x * 2.0);
  check(x / -8.0, x * -0.125);
  check(x / 0x1p126, x * 0x1p-126);
  kept(x / 0x1p127);  // 2^-127 is subnormal
  kept(x / 3.0);
  kept(x / 0.0);
  kept(x / inf);
  kept(number(1) / x);
  kept(Formula{&program, program.add(Op::ColumnCount)} / 2.0);
}

TEST_F(Simplify, Idempotence) {
  check(abs(abs(x)), abs(x));
  check(abs(-x), abs(x));
  check(floor(round(x)), round(x));
  check(round(floor(x)), floor(x));
  check(min(x, x), x);
  check(max(x, x), x);
  check(min(x, inf), x);
  check(max(-inf + number(0), x), x);
  check(r.with(Op::Amax, {r.id}), r);
}

TEST_F(Simplify, Fma) {
  check(fma(x, 1.0, y), x + y);
  check(fma(number(1), x, y), x + y);
  check(fma(-x, -y, r), fma(x, y, r));
  kept(fma(x, y, r));
}

TEST_F(Simplify, Conditions) {
  check(select(x < y, r, r), r);
  check(select(number(1) < number(2), x, y), x);
  check(select(number(2) < number(1), x, y), y);
  check(select(negated(number(2) < number(1)), x, y), x);
  check(select(negated(x < y), x, y), select(x < y, y, x));
  check(select(negated(negated(x < y)), x, y), select(x < y, x, y));
  Formula known = number(1) < number(2), c = x < y;
  check(select(c.with(Op::And, {c.id, known.id}), x, y), select(c, x, y));
  check(select(c.with(Op::Or, {c.id, known.id}), x, y), x);

  // No row or column is below 0.
  for (Op op : {Op::RowIndex, Op::ColumnIndex}) {
    const Formula place = x.with(op, {}), zero = number(0), minus = number(-2);
    auto at_most = [](Formula a, Formula b) { return a.with(Op::LessEqual, {a.id, b.id}); };
    auto same = [](Formula a, Formula b) { return a.with(Op::Equal, {a.id, b.id}); };
    check(select(place < zero, x, y), y);
    check(select(place < minus, x, y), y);
    check(select(at_most(place, minus), x, y), y);
    check(select(same(minus, place), x, y), y);
    check(select(minus < place, x, y), x);
    check(select(at_most(zero, place), x, y), x);
    kept(select(zero < place, x, y));
    kept(select(at_most(place, zero), x, y));
    kept(select(same(place, zero), x, y));
    kept(select(place < number(1), x, y));
  }
  // 2^24 + 1 is no f32, but these are integers and compare as such.
  check(select(equal(number(16777217), number(16777216)), x, y), y);
  check(select(equal(number(1 + 0x1p-30), number(1 + 0x1p-31)), x, y), x);
}

TEST_F(Simplify, Rounding) {
  check(rounded(rounded(y, Type::BF16), Type::BF16), rounded(y, Type::BF16));
  check(rounded(x, Type::F16), x);
  check(rounded(y * r, Type::F32), y * r);
  kept(rounded(x, Type::BF16));
  Formula scale = operand("scale", true, true, Type::F8E8M0), table = operand("table", true, true, Type::F8E8M0);
  program.operands.back().spread.row.pick = x.id;
  check(rounded(scale, Type::F8E8M0), scale);
  kept(rounded(table, Type::F8E8M0));  // outside the table it is 0, which the type rounds to 2^-127
  kept(rounded(rounded(y, Type::BF16), Type::F16));
}

TEST_F(Simplify, FoldsInTheComputeType) {
  folds(number(0.1) + number(0.2), 0.1f + 0.2f);
  folds(number(1) / number(3), 1.0f / 3.0f);
  folds(number(0.1) * number(0.1) + number(0.1), 0.1f * 0.1f + 0.1f);
  folds(fma(number(0.1), 0.1, 0.1), std::fma(0.1f, 0.1f, 0.1f));
  folds(sqrt(number(2)), std::sqrt(2.0f));
  folds(round(number(2.5)), 2);
  folds(rounded(number(1.001), Type::BF16), 1);
  use(Type::F64);
  folds(number(0.1) + number(0.2), 0.1 + 0.2);
  folds(number(1) / number(3), 1.0 / 3.0);
}

TEST_F(Simplify, FoldsUnderTheContractsArithmetic) {
  const FloatingPointState before = floating_point_state();
  set_floating_point_state(careless_state);
  Program after = simplified({number(0x1p-126) * number(0.5)});
  Program third = simplified({number(2) / number(3)});
  const FloatingPointState during = floating_point_state() & ~sticky_bits;
  set_floating_point_state(before);
  EXPECT_EQ(during, careless_state);
  EXPECT_EQ(after[after.results[0].value].number(), 0x1p-127);
  EXPECT_EQ(third[third.results[0].value].number(), 2.0f / 3.0f);
}

TEST_F(Simplify, WhatIsNotExactStays) {
  kept(x * 0.0);  // NaN, infinities
  kept(x - x);    // likewise
  kept(x / x);
  kept(number(0) / x);
  kept(x * y + r);  // two roundings
  kept((x + y) - y);
  kept(x + (y + r));
  kept(k * 1.5);  // the constant's value is not known
  kept(sum(r));   // n copies, summed by the contract's tree
}

TEST_F(Simplify, WhatChangesTheSignOfZeroStays) {
  kept(x + 0.0);  // -0 + 0 is +0
  kept(x - number(-0.0));
  kept(0.0 - x);
  kept(-(x - y));
  kept(fma(x, y, 0.0));
}

// A comparison asks what its sides are: j is an integer, j * 1 a number of the compute type.
TEST_F(Simplify, NumbersStayNumbersInComparisons) {
  const Formula j{&program, program.add(Op::ColumnIndex)}, i{&program, program.add(Op::RowIndex)};
  kept(select(j * 1.0 < i, x, y));
  kept(select(-(-j) < i, x, y));
  kept(select(equal(min(i, inf), j), x, y));
  kept(select(equal(number(16777216) + number(16777216), i), x, y));
  check(select(number(3) + number(4) < i, x, y), select(number(7) < i, x, y));
}

TEST_F(Simplify, NegatedComparisonStays) {  // not(x < y) is true for NaN, y <= x is not
  Formula both = x.with(Op::And, {negated(x < y).id, (x <= r).id});
  kept(select(both, x, y));
}

}  // namespace
}  // namespace trireme
