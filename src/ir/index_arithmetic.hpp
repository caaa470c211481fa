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

// The value; none where it depends on a leaf that is not known. An error as soon as a known part breaks the rule.
Result<std::optional<std::int64_t>> index_value(const Program& program, NodeId id, const KnownLeaves& known,
                                                std::string_view what);

// The value where all leaves are known.
Result<std::int64_t> index_constant(const Program& program, NodeId id, const KnownLeaves& known, std::string_view what);

// Any number of columns, forwards or back, as the one of 0 .. columns-1 that stands at the same place.
constexpr std::int64_t turned(std::int64_t by, std::int64_t columns) { return (by % columns + columns) % columns; }

}  // namespace trireme
