// The problem line, the unit of checking and timing: one line of text that says which program runs on what.
//
//   rms_norm 33x4097 x=bf16 gamma=none eps=1e-5 backward
//
// PROGRAM SHAPE, then in any order:
//   NAME=TYPE           the storage type of an operand or result; with +3 its lowest element lies 3 elements into its
//                       memory, with :5000 its rows are 5000 elements apart (x=bf16+3:5000). More strides are those of
//                       its axes, outermost first: q inside qkv is x=bf16:12288,128 in the shape 512x32x128, and with
//                       one for the last axis, too, its columns need not lie side by side (x=f32:12288,128,2). 0
//                       repeats, negative ones walk backwards. Without a type the place alone (x=:5000)
//   NAME=none           an operand that is absent, or a result that is not stored
//   NAME=none:TYPE      the same where the program asks for its type, largest(NAME)
//   NAME=NUMBER         a constant
//   backward            the derived program instead
//   axes=K              the last K axes of the shape make a row; 1 unless said
//   NAME.rows=N         rows of a table that an operand picks from; as many as the problem has unless said
//   gradients=NAMES     of a backward: the results whose gradients arrive, as gradients=loss,lse
//   seed=N              which samples; 0 unless said
//   accumulate=NAME,…   results, sums over rows, that are added to what stands in their memory: samples, too
//   row_block=N         rows of a block of sums over rows, where the rows are a part of more (docs/distributed.md)
// An operand not named is present, in the first element operand's type, which is f32 unless named; without an element
// operand the first with a value for each column stands in: a table.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "layout/buffers.hpp"
#include "trireme/result.hpp"
#include "trireme/type.hpp"
#include "trireme/view.hpp"

namespace trireme {

struct Problem {
  std::string program;              // an operator's name, or the path of a .row file
  std::vector<std::int64_t> shape;  // rank 1 to 8
  int axes = 1;
  bool backward = false;
  std::set<std::string> gradients;  // results whose gradients arrive in a backward; empty: those that do unless said
  std::map<std::string, Type> types;
  std::set<std::string> absent;
  std::map<std::string, double> constants;
  std::map<std::string, Placement> placements;
  std::set<std::string> accumulate;
  std::int64_t row_block = 0;  // rows of a block of sums over rows; 0: the contract's
  std::uint32_t seed = 0;

  std::int64_t rows() const;
  std::int64_t columns() const;
  friend bool operator==(const Problem&, const Problem&) = default;
};

Result<Problem> parse_problem(std::string_view line);

// print -> parse is the identity; names stand in alphabetical order.
std::string print(const Problem& problem);

}  // namespace trireme
