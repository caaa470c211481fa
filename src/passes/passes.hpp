// The passes, each a pure function from program to program. pipeline.cpp is the readable list of how they follow.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "trireme/program.hpp"

namespace trireme {

// Reverse mode on the graph: the program `<name>_backward`, in the same language. Gradients of results arrive as
// operands `d<result>` (default 0), gradients of operands leave as results `d<operand>`. Saved results of the forward
// are operands whose default is the expression that recomputes them.
Result<Program> differentiate(const Program& program, const DifferentiateOptions& options = {});

// The gradients that a backward takes, and the operands with expressions as defaults that are absent: what
// differentiate has to be told so that it fits a call.
DifferentiateOptions options_for(const Program& forward, const Program& backward, const std::set<std::string>& absent);

// The program with reductions that wait for another of the same element written as the totals of one fold: a variance
// by two means, sums of exponentials shifted by a maximum. A row is then reduced in one sweep, and machines that share
// it exchange once. Values are the same but for roundings, and where a row has infinities: nothing is shifted by one.
Program compose(const Program& program);

// What the parts of a row exchange: all parts' results of this name become their sum, largest or smallest; or the two
// totals of a fold (math/reductions.hpp), which merge together, in order of the parts and knowing their columns.
struct Exchange {
  std::string name;
  Op op;                    // Sum, Amax, Amin or Fold
  std::string second = {};  // of a fold: its other total
  std::int64_t fold = 0;    // index into folds()
};

// One step of a program whose rows are spread over several machines. Each machine runs it on its own columns, then all
// exchange what is listed; later stages take the exchanged values as operands of the same name.
struct SplitStage {
  Program program;
  std::vector<Exchange> exchanges;       // of the last stage: column sums without j
  std::vector<std::string> groups = {};  // "[j / group]": a part's columns begin and end with whole ones
};

// Cuts a program at its row reductions: `<name>_part1`, ..., `<name>_rest`. Results are stored by the first stage that
// can. The constant `columns` is the number of columns of the whole row, `first_column` where a machine's part begins.
// Saved results of a backward must be given. Groups of neighbouring columns are a part's
// own: it holds whole ones. What reads columns of other parts (rotate, wrapped j) is refused.
Result<std::vector<SplitStage>> split(const Program& program);

// How two neighbouring parts' values of an exchange become one, as a program: the left part's values, the right one's,
// and for folds the columns of both, which stand for all parts to the left or right that were combined before.
Program combine_program(const Exchange& exchange);

// What a plan knows and a program does not.
struct Binding {
  std::map<std::string, Type> types;                 // of every present operand in memory and every wanted result
  std::map<std::string, double> constants;           // those not given take their defaults
  std::set<std::string> absent;                      // operands in memory that are not given: defaults take their place
  std::optional<std::set<std::string>> wanted = {};  // the results that are stored; all if not given
  std::set<std::string> accumulate = {};             // results, sums over rows, that are added to what is there
  std::int64_t row_block = 0;                        // rows of a block of sums over rows; 0: the contract's
  std::optional<std::int64_t> columns = {};          // n; what `rotate` turns by is then a number of 0 .. n-1
  std::map<std::string, Type> types_of_absent =
      {};  // of operands and results without an array: what largest(q) asks for
};

// Fixes types, constants, absent operands and wanted results. A constant that is 0, 1, -1 or stands in an index folds
// into the program; every other stays a Constant and travels as a kernel parameter. Kernels are made of programs that
// were bound with their columns, or do not rotate.
Result<Program> bind(const Program& program, const Binding& binding);

// Exact rewriting, the sign of zero included; never reassociates. One rule a line in simplify.cpp.
Program simplify(const Program& program);

// Arrays of f4e2m1 become arrays of bytes spread [i, j / 2], and its rounding and patterns primitives. Refuses an odd
// number of columns, and spreads that have not two columns for each byte.
Result<Program> pack(const Program& program, std::optional<std::int64_t> columns);
bool can_be_packed(const Program::Array& array);  // whether it is so spread

// Replaces every composed node by its fixed sequence of primitives in the compute type; rotations sink to the leaves;
// sums over a row of their own are sums inside its groups.
// Refuses rotations inside rotations that would read too many values.
Result<Program> expand(const Program& program);

// A program on its way to a machine.
struct PreparedProgram {
  Program bound;                  // what the oracle runs
  Program expanded;               // what the reference and all targets run; same operands and results, packed as bytes
  std::vector<double> constants;  // one per operand: as the binding says, else its default
};

// bind -> simplify -> pack -> expand -> simplify -> in_canonical_order, verified in between.
Result<PreparedProgram> prepare(const Program& program, const Binding& binding);

}  // namespace trireme
