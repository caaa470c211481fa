// The last step of differentiate: chooses which results of the forward a backward reads, and orders its signature.
#pragma once
#include <vector>

#include "ir/program.hpp"

namespace trireme {

// A backward under construction. Its operands are the gradients, those that stand for their types alone, the forward's
// operands, and every result of the forward; the last three start where said.
struct Backward {
  Program program;
  std::size_t first_typed = 0;
  std::size_t first_operand = 0;
  std::size_t first_saved = 0;
  std::vector<NodeId> saved_values;  // the node of each result of the forward; no_node for column sums
};

// Reads as few [i,j] arrays as possible, then makes as few row reductions, then reads as few [i] arrays. A saved result
// becomes an operand whose default recomputes it.
Result<Program> finish_backward(const Program& forward, Backward backward);

}  // namespace trireme
