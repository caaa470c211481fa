// The passes, each a pure function from program to program. pipeline.cpp is the readable list of how they follow.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/program.hpp"

namespace trireme {

// Reverse mode on the graph: the program `<name>_backward`, in the same language. Gradients of results arrive as
// operands `d<result>` (default 0), gradients of operands leave as results `d<operand>`. Saved results of the forward
// are operands whose default is the expression that recomputes them.
Result<Program> differentiate(const Program& program);

// What a plan knows and a program does not.
struct Binding {
  std::map<std::string, Type> types;                 // of every present operand in memory and every wanted result
  std::map<std::string, double> constants;           // those not given take their defaults
  std::set<std::string> absent;                      // operands in memory that are not given: defaults take their place
  std::optional<std::set<std::string>> wanted = {};  // the results that are stored; all if not given
};

// Fixes types, constants, absent operands and wanted results. A constant that is 0, 1, -1 or stands in an index folds
// into the program; every other stays a Constant and travels as a kernel parameter.
Result<Program> bind(const Program& program, const Binding& binding);

// Exact rewriting, but for the sign of zero; never reassociates. One rule a line in simplify.cpp.
Program simplify(const Program& program);

// Replaces every composed node by its fixed sequence of primitives in the compute type.
Program expand(const Program& program);

// bind -> simplify -> expand -> simplify, verified in between: what the reference and all targets run.
Result<Program> prepare(const Program& program, const Binding& binding);

}  // namespace trireme
