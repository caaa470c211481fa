// From a problem line to something that runs: the program bound as the line says, and sampled memory.
#pragma once
#include <string_view>
#include <vector>

#include "ir/program.hpp"
#include "layout/buffers.hpp"
#include "passes/passes.hpp"
#include "problem/problem.hpp"
#include "problem/remarks.hpp"
#include "reference/reference.hpp"

namespace trireme {

// Results whose gradients a backward takes, where a problem line has to name them.
std::set<std::string> unusual_gradients(const RowProgram& backward);

// The backward that a line asks for: its gradients, and what is absent.
Result<Program> backward_of(const Problem& problem, const Program& forward);

// What the line says of `program`, which is `forward` itself or its backward. What the line leaves open:
//   operands             are present, in the type of the forward's leading operand (problem_shape.hpp; f32 if the line
//                        has none; where that is f4e2m1 and they have not a value for each column, in the compute
//                        type);
//   results              [i,j] have that type too, others the compute type; all are stored;
//   in a backward        a result of the forward has its forward's type, and so has its gradient, absent or not.
// Names of the forward that a backward does not have are let pass: one line serves both directions.
Result<Binding> binding_of(const Problem& problem, const Program& forward, const Program& program);

struct ResolvedProblem : PreparedProgram {
  Problem problem;
  Remarks remarks;
  Program program;  // the forward or its backward, as the line says
};

Result<ResolvedProblem> resolve(const Problem& problem, std::string_view program_text);

// Memory placed as the line says; operands filled with its samples.
Result<Buffers> empty_buffers(const ResolvedProblem& resolved, Backing backing = Backing::Memory);
// The table whose rows an operand picks; of several the smallest.
struct Table {
  std::int64_t rows = 0;
  bool written = false;  // no row is picked twice
};
std::optional<Table> table_picked_by(const Program& bound, const Buffers& buffers, std::size_t operand);

Result<Buffers> sampled_buffers(const ResolvedProblem& resolved);

}  // namespace trireme
