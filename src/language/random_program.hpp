// Random programs for fuzzers: verified, and over the whole language or the parts of it that a test asks for.
#pragma once
#include <cstdint>

#include "ir/program.hpp"

namespace trireme {

struct RandomProgram {
  std::uint64_t seed = 0;  // the same seed and options give the same program on every machine
  int size = 40;           // about how many operations

  bool reductions = true;     // sum, mean, amax, amin, and the composed ones
  bool groups = true;         // reductions inside groups of columns and over them; needs `reductions`
  bool column_sums = true;    // results [j], [] and, with `divided`, divided and wrapped ones
  bool column_maxima = true;  // of those results some
  bool divided = true;  // w[i % heads, j]; the constants in indices have 1 .. 5 as defaults, and may be what divides 60
  int columns_multiple = 1;     // n is a multiple of it, and divided by its parts in indices and rotations
  bool conditions = true;       // comparisons, and, or, not, select
  bool functions = true;        // those of the table
  bool indices = true;          // i, j, n as numbers
  bool picks = false;           // rows picked by operands p1, p2, which are integers, of other operands and of results
  bool seeds = false;           // random() of an operand `seed`, which is i64, and cast_stochastic
  bool rotations = true;        // by any arithmetic of numbers, constants and n
  bool casts = true;            // cast and largest; round_to if bound
  bool defaults = true;         // of operands in memory: numbers, and expressions of the operands before
  bool special_numbers = true;  // inf, nan, -0, subnormals, the largest; else small ones only
  bool bound = false;           // types and a compute type
  bool bits = false;            // the bits_ operations of expansions; needs `bound`
  bool odd_names = false;       // names of nodes that clash, repeat, or are no names at all: the printer's business
};

Program random_program(const RandomProgram& options);

}  // namespace trireme
