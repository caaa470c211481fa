#include "ir/verify.hpp"

#include <gtest/gtest.h>

#include "ir/build.hpp"

namespace trireme {
namespace {

// f(x[i,j], w[j], heads) -> (y[i,j], s[j]); each test spoils one thing.
struct Sample {
  Program program;
  Formula x, w, heads;
  Sample() {
    program.name = "f";
    program.operands = {{.name = "x", .spread = {{true}, {true}}},
                        {.name = "w", .spread = {{}, {true}}},
                        {.name = "heads", .constant = true}};
    x = {&program, program.add(Op::Operand, {}, 0)};
    w = {&program, program.add(Op::Operand, {}, 1)};
    heads = {&program, program.add(Op::Constant, {}, 2)};
    program.results = {{.name = "y", .spread = {{true}, {true}}, .value = (x * w).id},
                       {.name = "s", .spread = {{}, {true}}, .value = column_sum(x).id}};
  }
  void bind() {
    program.compute = Type::F32;
    program.operands[0].type = program.operands[1].type = Type::BF16;
    program.results[0].type = program.results[1].type = Type::F32;
  }
};

std::string answer(const Program& program) {
  Status status = verify(program);
  return status ? "fine" : status.error().message;
}

template <typename Spoil>
std::string answer_to(Spoil&& spoil) {
  Sample sample;
  spoil(sample);
  return answer(sample.program);
}

TEST(Verify, accepts) {
  EXPECT_EQ(answer(Sample().program), "fine");
  Sample bound;
  bound.bind();
  bound.program.results[0].value = bits_shift_left(bound.x.with(Op::RoundTo, {bound.x.id}, 3), 31).id;
  EXPECT_EQ(answer(bound.program), "fine");
}

TEST(Verify, ignores_what_no_result_reaches) {
  EXPECT_EQ(answer_to([](Sample& s) { s.x + column_sum(s.x); }), "fine");
}

TEST(Verify, names) {
  EXPECT_EQ(answer_to([](Sample& s) { s.program.name = ""; }), ": the program's name is not a name");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results.clear(); }), "f: there is no result");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.operands[1].name = "i"; }),
            "f: 'i' is no name for an operand or result");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.operands[1].name = "2w"; }),
            "f: '2w' is no name for an operand or result");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results[1].name = "x"; }), "f: the name 'x' is defined twice");
}

TEST(Verify, ids) {
  std::string missing = "f: a node that does not exist is referred to";
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results[0].value = 999; }), missing);
  EXPECT_EQ(answer_to([](Sample& s) { s.program.operands[0].fallback = 999; }), missing);
  EXPECT_EQ(answer_to([](Sample& s) { s.program.operands[0].spread.row.wrap = 999; }), missing);
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results[0].value = no_node; }), "f: the result 'y' has no value");
}

TEST(Verify, arguments) {
  auto value = [](Op op, int arguments, std::int64_t payload = 0) {
    return answer_to([=](Sample& s) {
      NodeId args[3] = {s.x.id, s.x.id, s.x.id};
      s.program.results[0].value =
          s.program.add(op, std::span<const NodeId>(args, static_cast<std::size_t>(arguments)), payload);
    });
  };
  EXPECT_EQ(value(Op::Add, 1), "f: node 5 (+) has 1 arguments");
  EXPECT_EQ(value(Op::Call, 0), "f: node 5 (call) has 0 arguments");
  EXPECT_EQ(value(Op::Call, 1, -1), "f: node 5 (call) names no function");
  EXPECT_EQ(value(Op::Select, 3), "f: node 5 (select) needs a condition as its argument 1");
  EXPECT_EQ(value(Op::Not, 1), "f: node 5 (not) needs a condition as its argument 1");
  EXPECT_EQ(value(Op::Cast, 1, 7), "f: node 5 (cast) names no symbol");
  EXPECT_EQ(value(Op::RoundTo, 1), "f: node 5 (round_to) needs a bound program, whose compute type is known");
  EXPECT_EQ(value(Op::BitsAdd, 2), "f: node 5 (bits_add) needs a bound program, whose compute type is known");
  EXPECT_EQ(value(Op::Rotate, 2), "f: node 5 (rotate) needs short arithmetic of constants, numbers and n");
  EXPECT_EQ(value(Op::Constant, 0, 0), "f: node 5 (constant) mistakes what 'x' is");
  EXPECT_EQ(value(Op::Constant, 0, 9), "f: node 5 (constant) names no operand");
  EXPECT_EQ(value(Op::Number, 0, 0x7FF0000000000001),
            "f: node 5 (number) is a NaN other than the quiet one; text cannot tell them apart");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results[0].value = (s.x + (s.x < s.w)).id; }),
            "f: node 6 (+) needs a value as its argument 2");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results[0].value = (s.x + column_sum(s.x)).id; }),
            "f: node 5 (+) uses a colsum, which only a result may be");
  EXPECT_EQ(answer_to([](Sample& s) {
              NodeId args[] = {s.x.id};
              s.program.results[0].value = s.program.symbol(Op::Cast, "heads", args);
            }),
            "f: node 5 (cast) names 'heads', which is neither an operand in memory nor a result");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results[0].value = reciprocal_from_one(s.x).id; }), "fine");
  EXPECT_EQ(answer_to([](Sample& s) {
              s.program.results[0].value = s.x.with(Op::Div, {s.x.id, s.w.id}, 1).id;
            }),
            "f: node 5 (/) marks its divisor, and is not a reciprocal");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.operands[1].spread.row.present = true; }),
            "f: node 1 (operand) was made with another spread than that of 'w'");
}

TEST(Verify, bound_programs) {
  EXPECT_EQ(answer_to([](Sample& s) { s.program.compute = Type::F16; }), "f: the compute type is neither f32 nor f64");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.compute = Type::F32; }), "f: 'x' has no type");
  EXPECT_EQ(answer_to([](Sample& s) { s.program.results[0].type = Type::F32; }),
            "f: 'y' has a type, but the program is not bound");
  EXPECT_EQ(answer_to([](Sample& s) {
              s.bind();
              s.program.results[0].value = bits_shift_right(s.x, 32).id;
            }),
            "f: node 5 (bits_shift_right) shifts by 32, beyond the compute type's width");
  EXPECT_EQ(answer_to([](Sample& s) {
              s.bind();
              s.program.results[0].value = s.program.symbol(Op::Largest, "x", {});
            }),
            "f: node 5 (largest) is left in a bound program");
}

TEST(Verify, spreads) {
  std::string unfit =
      "f: an index of 'w' is divided or wrapped by something other than a positive integer, by short arithmetic of "
      "constants, n and numbers";
  auto divided_by = [](auto&& divisor) {
    return answer_to([&](Sample& s) { s.program.operands[1].spread.column.divide = divisor(s).id; });
  };
  EXPECT_EQ(divided_by([](Sample& s) { return s.heads; }), "fine");
  EXPECT_EQ(divided_by([](Sample& s) { return s.heads / 2 / s.heads; }), "fine");
  EXPECT_EQ(divided_by([](Sample& s) { return s.x; }), unfit);
  EXPECT_EQ(divided_by([](Sample& s) { return s.heads * 2 - 1; }), "fine");
  EXPECT_EQ(divided_by([](Sample& s) { return s.x.number(3) - 3; }), unfit);
  EXPECT_EQ(divided_by([](Sample& s) { return sqrt(s.heads); }), unfit);
  EXPECT_EQ(divided_by([](Sample& s) { return s.heads / 2.5; }), unfit);
  EXPECT_EQ(divided_by([](Sample& s) { return s.x.number(0); }), unfit);
  EXPECT_EQ(divided_by([](Sample& s) {  // 2^64 nodes as a tree
              Formula value = s.heads;
              for (int k = 0; k < 64; ++k) value = value / value;
              return value;
            }),
            unfit);
  EXPECT_EQ(answer_to([](Sample& s) { s.program.operands[1].spread.row.wrap = s.heads.id; }),
            "f: 'w' divides an index it does not have");
}

TEST(Verify, defaults) {
  auto fallback = [](std::size_t operand, auto&& value) {
    return answer_to([&](Sample& s) { s.program.operands[operand].fallback = value(s).id; });
  };
  EXPECT_EQ(fallback(0, [](Sample& s) { return s.x.number(1); }), "fine");
  EXPECT_EQ(fallback(2, [](Sample& s) { return s.x.number(1); }), "fine");
  EXPECT_EQ(fallback(1, [](Sample& s) { return s.heads + 1; }), "fine");
  EXPECT_EQ(fallback(2, [](Sample& s) { return s.heads + 1; }),
            "f: the default of the constant 'heads' is not a number");
  EXPECT_EQ(fallback(1, [](Sample& s) { return s.x; }), "f: the default of 'w' is spread wider than it");
  EXPECT_EQ(fallback(1, [](Sample& s) { return s.heads < s.heads; }), "f: the default of 'w' is not a value");
  EXPECT_EQ(fallback(0, [](Sample& s) { return s.w * 2; }),
            "f: the default of 'x' reads an operand that does not stand before it");
  EXPECT_EQ(fallback(0, [](Sample& s) { return s.x; }),
            "f: the default of 'x' reads an operand that does not stand before it");
}

TEST(Verify, results) {
  auto result = [](Spread spread, auto&& value) {
    return answer_to([&](Sample& s) {
      s.program.results[0].spread = spread;
      s.program.results[0].value = value(s).id;
    });
  };
  Spread element{{true}, {true}}, row{{true}, {}}, column{{}, {true}};
  EXPECT_EQ(result(element, [](Sample& s) { return s.heads; }), "fine");
  EXPECT_EQ(result(row, [](Sample& s) { return sum(s.x); }), "fine");
  EXPECT_EQ(result({}, [](Sample& s) { return column_sum(s.x); }), "fine");
  EXPECT_EQ(result(row, [](Sample& s) { return s.x; }), "f: the result 'y' is spread narrower than its value");
  EXPECT_EQ(result(column, [](Sample& s) { return s.w; }), "f: the result 'y' needs a colsum or a colmax as its value");
  EXPECT_EQ(result(row, [](Sample& s) { return column_sum(s.x); }),
            "f: the result 'y' is one value a row or element and takes no colsum");
  EXPECT_EQ(result(column, [](Sample& s) { return s.x.with(Op::ColumnMax, {s.x.id}); }), "fine");
  EXPECT_EQ(result(row, [](Sample& s) { return s.x.with(Op::ColumnMax, {s.x.id}); }),
            "f: the result 'y' is one value a row or element and takes no colmax");
  EXPECT_EQ(result(element, [](Sample& s) { return s.x < s.w; }), "f: the result 'y' is a condition, not a value");
}

}  // namespace
}  // namespace trireme
