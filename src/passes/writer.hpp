// Writes sums of products down as nodes, so that they read like a textbook and element operations are few:
// values of the forward are used whole (x * rstd, exp(x - lse)), row factors go into a sum where that makes one,
// terms that differ only by a sum share one reduction, and common factors are written once.
#pragma once
#include <map>
#include <vector>

#include "ir/groups.hpp"
#include "passes/algebra.hpp"

namespace trireme {

class Writer {
 public:
  // `forward`: which nodes are values of the forward, and may be used whole. The first operands are the gradients.
  Writer(Algebra& algebra, const std::vector<bool>& forward, std::size_t gradients);

  NodeId write(const Terms& terms);

 private:
  // A value without its sign; signs become subtractions.
  struct Signed {
    NodeId node;
    bool negative;
  };
  // Terms with the same inner factors: inner * (sum of outer).
  struct Group {
    Term inner;
    Terms outer;
  };

  // Products and sums of the forward, and what they are made of (whole.cpp).
  struct Whole {
    NodeId node;
    Term parts;
  };
  struct WholeSum {
    NodeId node;
    Terms parts;
  };
  void find_wholes(const std::vector<bool>& forward);
  Term with_wholes(Term term) const;
  Term with_exponents(Term term);
  Terms with_whole_sum(Terms sum, NodeId logarithm) const;
  bool scales(NodeId row, NodeId element) const;
  Term with_sums(Term term);
  Term prepared(const Term& term);

  // Reductions (sum or mean) with what they add up.
  struct Reduction {
    Op op;
    Terms body;
  };
  Signed reduce(Op op, const Terms& body);
  Terms merged(Terms rows);

  Signed sum_of(Terms terms, bool rows);
  std::vector<Group> grouped(const Terms& terms, bool rows);
  Signed product_of(const Group& group);
  Signed added(const std::vector<Signed>& values);
  struct Shared {
    Term factors;
    std::vector<bool> groups;  // which have them
    bool inner;
  };
  bool find_shared(const std::vector<Group>& groups, Shared& best);
  void keep_guards(const std::vector<Group>& groups, Shared& shared);
  NodeId times(NodeId value, const Term& factors);
  NodeId factored(NodeId inside, const Term& factors);
  bool reads_gradient(NodeId id);
  NodeId masked(NodeId value, const Term& factors);

  NodeId node(Op op, NodeId a, NodeId b) { return program_.add(op, {a, b}); }

  Algebra& algebra_;
  Program& program_;
  ColumnSpreads spreads_{program_};
  std::vector<bool> forward_;
  std::size_t gradients_;
  std::vector<bool> reads_gradient_;                    // of the nodes looked at so far
  std::map<NodeId, std::vector<Whole>> wholes_;         // by the last of their parts
  std::map<NodeId, std::vector<WholeSum>> whole_sums_;  // by each logarithm among their parts
  std::map<NodeId, NodeId> logarithms_;                 // of sums and the like: s -> log(s)
  std::map<NodeId, Reduction> reductions_;
};

}  // namespace trireme
