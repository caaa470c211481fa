// Whole-number arithmetic: what an index is divided and wrapped by, and how far `rotate` turns.
//
// + - * / and unary - over numbers, constants and n, made step by step in integers. One rule for all of it: every
// number and every constant is whole, every quotient comes out whole, and no step leaves +-2^53, where text and f64
// hold every integer. It is applied as soon as the parts are known: to numbers by the parser, to constants by bind, to
// n by bind too where the plan's columns are given.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "ir/program.hpp"

namespace trireme {

// The leaves whose values are known, besides numbers.
struct KnownLeaves {
  std::optional<std::int64_t> columns = {};  // n
  std::span<const double> constants = {};    // one per operand of the program, or none
};

// What the arithmetic is for, as errors say it.
inline constexpr std::string_view a_divisor = "an index divisor must be a positive integer";
inline constexpr std::string_view a_rotation = "rotate needs a whole number of columns";
inline constexpr std::string_view a_first_row = "random needs a whole number from 0 to 2^53 as its first row";
inline constexpr std::string_view a_first_column = "random needs a whole number from 0 to 2^30 as its first column";

// The value; none where it depends on a leaf that is not known. An error as soon as a known part breaks the rule.
Result<std::optional<std::int64_t>> index_value(const Program& program, NodeId id, const KnownLeaves& known,
                                                std::string_view what);

// The value where all leaves are known.
Result<std::int64_t> index_constant(const Program& program, NodeId id, const KnownLeaves& known, std::string_view what);

// What an index may be divided and wrapped by, as far as it is known: a positive integer.
Status check_divisor(const Program& program, NodeId id);

// Where `random` starts to count, of a bound program: its row i is row + i, its column j is column + j. Registers of
// columns have 32 bits, so that j and a first column fit.
struct FirstPlace {
  std::int64_t row = 0, column = 0;
};
inline constexpr std::int64_t most_first_column = std::int64_t{1} << 30;
FirstPlace first_place(const Program& program, const Node& random);
Status check_first(const Program& program, NodeId first, bool is_row);  // as far as it is known

// Any number of columns, forwards or back, as the one of 0 .. columns-1 that stands at the same place.
constexpr std::int64_t turned(std::int64_t by, std::int64_t columns) { return (by % columns + columns) % columns; }

}  // namespace trireme
