#include "ir/index_arithmetic.hpp"

#include <gtest/gtest.h>

#include "ir/build.hpp"

namespace trireme {
namespace {

// n and a constant k, in one program whose nodes tests write as formulas.
struct IndexArithmeticTest : testing::Test {
  IndexArithmeticTest() { program.operands.push_back({.name = "k", .constant = true}); }
  Program program;
  Formula n{&program, program.add(Op::ColumnCount)}, k{&program, program.add(Op::Constant, {}, 0)};
  Formula number(double value) { return n.number(value); }

  static std::string text(const Result<std::optional<std::int64_t>>& value) {
    if (!value) return value.error().message;
    return *value ? std::to_string(**value) : "unknown";
  }
  std::string at(Formula formula, std::int64_t columns, double constant) {
    double constants[] = {constant};
    return text(index_value(program, formula.id, {columns, constants}, "wanted"));
  }
  std::string unknown(Formula formula) { return text(index_value(program, formula.id, {}, "wanted")); }
};

TEST_F(IndexArithmeticTest, is_signed_and_exact) {
  EXPECT_EQ(at(n - 1.0, 12, 3), "11");
  EXPECT_EQ(at(k + n * 2.0, 12, -30), "-6");
  EXPECT_EQ(at(-n / number(2), 12, 3), "-6");
  EXPECT_EQ(at(number(3) * n / number(4), 12, 3), "9");
  EXPECT_EQ(at(n / -k, 12, 3), "-4");
  EXPECT_EQ(at(n * n - n / n, 12, 3), "143");
  EXPECT_EQ(at(number(-0.0), 12, 3), "0");
  EXPECT_EQ(at(number(0x1p53), 12, 3), "9007199254740992");
}

TEST_F(IndexArithmeticTest, fault_52_every_step_must_be_whole) {
  EXPECT_EQ(at(n / number(5), 12, 3), "wanted, not 12 / 5");
  EXPECT_EQ(at(n / number(5) * 5.0, 12, 3), "wanted, not 12 / 5");
  EXPECT_EQ(at(n / (k - 3.0), 12, 3), "wanted, not 12 / 0");
  EXPECT_EQ(at(n + k, 12, 0.5), "wanted, not 0.5");
  EXPECT_EQ(at(number(0x1p52) * k, 12, 3), "wanted, not 4503599627370496 * 3, which is beyond 2^53");
  EXPECT_EQ(at(number(0x1p53) * number(0x1p53), 12, 3),
            "wanted, not 9007199254740992 * 9007199254740992, which is beyond 2^53");
  EXPECT_EQ(at(sqrt(n), 4, 3), "wanted, not made with 'sqrt'");
}

TEST_F(IndexArithmeticTest, says_what_is_known_of_a_part) {
  EXPECT_EQ(unknown(n - 1.0), "unknown");
  EXPECT_EQ(unknown(k / number(2)), "unknown");
  EXPECT_EQ(unknown(number(6) / number(2)), "3");
  EXPECT_EQ(unknown(n + number(1) / number(2)), "wanted, not 1 / 2");
  EXPECT_EQ(unknown(n / number(0)), "wanted, not a quotient by 0");
  EXPECT_EQ(unknown(k * 1.5), "wanted, not 1.5");
  EXPECT_EQ(index_constant(program, n.id, {}, "wanted").error().message,
            "wanted, not one of constants or of an n that is not known");
}

TEST_F(IndexArithmeticTest, turns_any_way) {
  for (std::int64_t by : {-25, -12, -1, 0, 1, 11, 12, 13, 1000})
    for (std::int64_t columns : {1, 2, 12}) {
      std::int64_t place = turned(by, columns);
      EXPECT_TRUE(0 <= place && place < columns && (by - place) % columns == 0) << by << ' ' << columns;
    }
}

}  // namespace
}  // namespace trireme
