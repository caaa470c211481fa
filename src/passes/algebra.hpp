// Reads the nodes of a graph as products and sums, so that a gradient can be worked on as mathematics: row factors
// leave sums, sum(x - mean(x)) is 0, a mask times itself is itself. It says what values are equal, not how to compute
// them; writer.hpp decides that.
#pragma once
#include <map>
#include <vector>

#include "ir/groups.hpp"
#include "ir/program.hpp"
#include "passes/terms.hpp"

namespace trireme {

class Algebra {
 public:
  explicit Algebra(Program& program) : program_(program), spreads_(program) {}

  // What stands in the program now is the forward; its sums are known values, which cost nothing to use again.
  void end_of_forward();
  bool in_forward(NodeId id) const { return id < forward_end_; }
  NodeId forward_end() const { return forward_end_; }

  Term term_of(NodeId id);                // as a product
  Term inverse_of(NodeId id);             // of 1 / id
  Terms linear_of(NodeId id);             // as a sum of products
  void keep_whole(NodeId id);             // from now on this node is a factor of its own
  Terms product(Terms a, const Term& b);  // masks considered
  // Was it kept whole because a value of other groups multiplies it?
  bool is_whole(NodeId id) const { return id < wholes_.size() && wholes_[id]; }

  // 1 where the condition holds and 0 elsewhere, or the other way round. Written as a select, never multiplied.
  Term mask(NodeId condition, bool where_true);
  bool is_mask(NodeId id) const;

  // The sum of the term along its row, and the other way: a term whose sum along the row is the given one.
  Terms sum_along_row(const Term& term);
  Term spread_along_row(const Term& term);

  // Of a sum: what it adds up, its row factors already outside.
  const Term* body_of(NodeId sum) const;
  void set_body(NodeId sum, Term body) { bodies_[sum] = std::move(body); }

  // The factors that differ along the row, and those that do not (with the coefficient).
  Term element_part(const Term& term) const { return part(term, true); }
  Term row_part(const Term& term) const { return part(term, false); }
  bool by_column(NodeId id) const { return program_[id].by_column; }

  Program& program() { return program_; }

 private:
  Term part(const Term& term, bool by_column) const;
  Term read(NodeId id);
  Term read_product(NodeId a, NodeId b, bool divided);
  bool mixes_groups(const Term& term);
  Term plain_sum(const Term& term);
  NodeId canonical_product(const Term& term);

  Program& program_;
  NodeId forward_end_ = 0;
  std::vector<Term> terms_;  // of each node, once read
  std::vector<bool> read_;
  std::map<NodeId, Term> bodies_;
  ColumnSpreads spreads_;
  std::vector<bool> wholes_;
};

}  // namespace trireme
