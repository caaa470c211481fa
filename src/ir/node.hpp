// The one node type of a program's graph.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace trireme {

using NodeId = std::uint32_t;
inline constexpr NodeId no_node = ~NodeId{0};

enum class Op : std::uint8_t {
  // Leaves
  Number,       // payload: the value's bits, f64
  Constant,     // payload: index into Program::operands; given when the plan is made
  Operand,      // payload: index into Program::operands; an element of memory, widened
  RowIndex,     // i
  ColumnIndex,  // j
  ColumnCount,  // n
  // Primitives: what a target's machine executes, each rounding once
  Add,
  Sub,
  Mul,
  Div,  // payload: 1 where the dividend is 1 and the divisor in [1, 2^126), infinite or NaN, which some targets use
  Neg,
  Abs,
  Sqrt,
  Fma,
  Min,
  Max,
  Floor,
  Round,  // to the nearest integer, ties to even
  Less,
  LessEqual,
  Equal,
  And,
  Or,
  Not,
  Select,
  BitsAdd,  // on the bits of the values, as integers of the compute type's width; only expansions use these
  BitsAnd,
  BitsOr,
  BitsShiftLeft,   // payload: by how much
  BitsShiftRight,  // payload: by how much; zeros come in
  RoundTo,         // payload: a Type; rounds to it and widens again
  Random,          // args: an operand, the seed, never a number, and maybe the first row and column, whole numbers that
                   // bind knows: where i and j are 0 for the rest of the program; payload: the stream (philox.hpp)
  Sum,             // over j
  Amax,
  Amin,
  Fold,        // over j, one of the two totals of a fold; payload: 2 * index into folds() (math/reductions.hpp) + which
  Group,       // inside groups of columns, or over groups; args: value, g; payload: a GroupReduction (ir/groups.hpp)
  PickColumn,  // args: value, column (an integer of the row); what sum(select(j == column, value, 0)) is
  ColumnSum,   // over all (i, j) that land on the same entry of its result
  ColumnMax,   // the same, the largest of them
  // Composed: `bind` and `expand` replace these
  Mean,
  Reduce,          // payload: index into reductions() (math/reductions.hpp); one value a row
  ReduceSpread,    // the same, one value an element
  Call,            // payload: index into the table of functions (math/functions.hpp)
  Cast,            // payload: index into Program::symbols; RoundTo once types are known
  CastStochastic,  // args: value, random number; payload as Cast's; steps of the type's size once types are known
  Largest,         // payload: index into Program::symbols; a Number once types are known
  Rotate,          // args: value, how many columns on
  StopGradient,
};

struct OpFacts {
  Op op;
  std::string_view name;
  int arity;         // -1: any (Call)
  bool commutative;  // `a + b` and `b + a` are one node
};

inline constexpr std::array<OpFacts, 49> op_facts = {{
    {Op::Number, "number", 0, false},
    {Op::Constant, "constant", 0, false},
    {Op::Operand, "operand", 0, false},
    {Op::RowIndex, "i", 0, false},
    {Op::ColumnIndex, "j", 0, false},
    {Op::ColumnCount, "n", 0, false},
    {Op::Add, "+", 2, true},
    {Op::Sub, "-", 2, false},
    {Op::Mul, "*", 2, true},
    {Op::Div, "/", 2, false},
    {Op::Neg, "-", 1, false},
    {Op::Abs, "abs", 1, false},
    {Op::Sqrt, "sqrt", 1, false},
    {Op::Fma, "fma", 3, false},
    {Op::Min, "min", 2, true},
    {Op::Max, "max", 2, true},
    {Op::Floor, "floor", 1, false},
    {Op::Round, "round", 1, false},
    {Op::Less, "<", 2, false},
    {Op::LessEqual, "<=", 2, false},
    {Op::Equal, "==", 2, true},
    {Op::And, "and", 2, true},
    {Op::Or, "or", 2, true},
    {Op::Not, "not", 1, false},
    {Op::Select, "select", 3, false},
    {Op::BitsAdd, "bits_add", 2, true},
    {Op::BitsAnd, "bits_and", 2, true},
    {Op::BitsOr, "bits_or", 2, true},
    {Op::BitsShiftLeft, "bits_shift_left", 1, false},
    {Op::BitsShiftRight, "bits_shift_right", 1, false},
    {Op::RoundTo, "round_to", 1, false},
    {Op::Random, "random", 1, false},
    {Op::Sum, "sum", 1, false},
    {Op::Amax, "amax", 1, false},
    {Op::Amin, "amin", 1, false},
    {Op::Fold, "fold", 1, false},
    {Op::Group, "group", 2, false},
    {Op::PickColumn, "pick_column", 2, false},
    {Op::ColumnSum, "colsum", 1, false},
    {Op::ColumnMax, "colmax", 1, false},
    {Op::Mean, "mean", 1, false},
    {Op::Reduce, "reduce", 1, false},
    {Op::ReduceSpread, "reduce_spread", 1, false},
    {Op::Call, "call", -1, false},
    {Op::Cast, "cast", 1, false},
    {Op::CastStochastic, "cast_stochastic", 2, false},
    {Op::Largest, "largest", 0, false},
    {Op::Rotate, "rotate", 2, false},
    {Op::StopGradient, "stop_gradient", 1, false},
}};

constexpr const OpFacts& facts(Op op) { return op_facts[static_cast<std::size_t>(op)]; }
constexpr bool is_row_reduction(Op op) {
  return (op >= Op::Sum && op <= Op::Fold) || op == Op::Mean || op == Op::Reduce;
}
// Over rows: only a result's whole value.
constexpr bool is_column_reduction(Op op) { return op == Op::ColumnSum || op == Op::ColumnMax; }
// What a column reduction does along a row, and goes on with over rows.
constexpr Op row_reduction_of(Op op) { return op == Op::ColumnMax ? Op::Amax : Op::Sum; }
// Whether an operation names an operand or result, for its type: its payload is an index into Program::symbols.
constexpr bool names_symbol(Op op) { return op == Op::Cast || op == Op::CastStochastic || op == Op::Largest; }
constexpr bool is_condition(Op op) {
  return op == Op::Less || op == Op::LessEqual || op == Op::Equal || op == Op::And || op == Op::Or || op == Op::Not;
}
// Whether argument k of an operation is a condition; all others are values.
constexpr bool takes_condition(Op op, int k) {
  return op == Op::And || op == Op::Or || op == Op::Not || (op == Op::Select && k == 0);
}

struct Node {
  Op op;
  std::uint8_t arity = 0;
  bool by_row = false;     // its value differs from row to row
  bool by_column = false;  // its value differs from column to column
  std::array<NodeId, 3> args = {no_node, no_node, no_node};
  std::int64_t payload = 0;

  double number() const { return std::bit_cast<double>(payload); }
  auto begin() const { return args.begin(); }
  auto end() const { return args.begin() + arity; }
};

}  // namespace trireme
