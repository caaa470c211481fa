// A row program as a graph.
//
// A program maps operands to results over the rows i and columns j of a matrix. A value is spread over the matrix by
// the indices it depends on: per element, per row, per column, or one value; arithmetic spreads its arguments up to
// their union. Row reductions (sum, mean, amax, amin) turn elements into one value a row, and one a group of columns
// where they say so (groups.hpp); `colsum` and
// `colmax` run over all (i, j) that land on one entry of their result and are always the whole right side of one.
// Nothing else crosses rows, so a row's results never depend on other rows.
//
// Nodes are hash-consed into a flat list: equal ids are equal values, arguments stand before their users, and `a + b`
// and `b + a` are one node with the first spelling kept. A program grows only by add(); passes build a new one.
//
// Life of a program: parsed or built -> verified -> differentiated or split -> bound (types, constants, absent operands
// fixed) -> simplified -> expanded (primitives only). Each form prints, and the same verifier runs between the steps.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/node.hpp"
#include "trireme/result.hpp"
#include "trireme/type.hpp"

namespace trireme {

// One index of an operand or result: `i`, `(i / divide) % wrap`. Divisors are constant expressions (verify.hpp). Or, of
// a table's rows, the value of an integer operand: `pick` is its Operand node.
struct Axis {
  bool present = false;
  NodeId divide = no_node;
  NodeId wrap = no_node;
  NodeId pick = no_node;
  bool divided() const { return divide != no_node || wrap != no_node; }
  bool picked() const { return pick != no_node; }
  bool plain() const { return !divided() && !picked(); }
};

// How an operand or result is spread: [i,j], [i], [j], [] and their divided and wrapped forms.
struct Spread {
  Axis row, column;
  bool plain() const { return row.plain() && column.plain(); }
};

// Results spread so may have `colsum(e)` or `colmax(e)` as their whole value: several elements land on one entry.
constexpr bool takes_column_sum(const Spread& spread) {
  return !spread.row.present || spread.row.divided() || !spread.column.plain();
}

struct Operand {
  std::string name;
  bool constant = false;          // no brackets: given when the plan is made, not read from memory
  Spread spread;                  // of an operand in memory
  NodeId fallback = no_node;      // its default: a Number, or (saved results of a backward) what recomputes it
  std::optional<Type> type = {};  // set by bind
};

struct Output {
  std::string name;
  Spread spread;
  NodeId value = no_node;
  std::optional<Type> type = {};  // set by bind
  bool accumulate = false;        // set by bind, of sums over rows: added to what stands in its memory, at the end
  std::int64_t row_block = 0;     // set by bind, of sums over rows: rows of a block; 0: the contract's
};

// The nodes that an index names, as they stand in it; no_node for those that are not there.
inline std::array<NodeId*, 6> nodes_of(Spread& spread) {
  return {&spread.row.divide,    &spread.row.wrap,    &spread.row.pick,
          &spread.column.divide, &spread.column.wrap, &spread.column.pick};
}
inline std::array<NodeId, 6> nodes_of(const Spread& spread) {
  return {spread.row.divide,    spread.row.wrap,    spread.row.pick,
          spread.column.divide, spread.column.wrap, spread.column.pick};
}

class Program {
 public:
  std::string name;
  std::vector<Operand> operands;  // constants among them, in the order of the signature
  std::vector<Output> results;
  std::vector<std::string> symbols;  // the names that cast() and largest() refer to
  std::optional<Type> compute = {};  // set by bind: F32 or F64

  const Node& operator[](NodeId id) const { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }

  NodeId add(Op op, std::initializer_list<NodeId> args = {}, std::int64_t payload = 0) {
    return add(op, std::span<const NodeId>(args.begin(), args.size()), payload);
  }
  NodeId add(Op op, std::span<const NodeId> args, std::int64_t payload = 0);
  NodeId number(double value);
  NodeId symbol(Op op, std::string_view name, std::span<const NodeId> args);  // Cast, Largest

  // A name the printer gives to a node; results and operands have theirs already.
  void give_name(NodeId id, std::string name);
  const std::string* name_of(NodeId id) const;
  const std::vector<std::pair<NodeId, std::string>>& names() const { return names_; }

  // Operands and results as one list, operands first: how kernels, layouts and problems count arrays.
  struct Array {
    const std::string& name;
    const Spread& spread;
    std::optional<Type> type;
    bool result;
    bool in_memory;  // constants are not
  };
  std::size_t array_count() const { return operands.size() + results.size(); }
  std::size_t array_of_result(std::size_t result) const { return operands.size() + result; }
  Array array(std::size_t k) const {
    if (k < operands.size())
      return {operands[k].name, operands[k].spread, operands[k].type, false, !operands[k].constant};
    const Output& result = results[k - operands.size()];
    return {result.name, result.spread, result.type, true, true};
  }

  std::optional<std::size_t> find_operand(std::string_view name) const;
  std::optional<std::size_t> find_result(std::string_view name) const;

 private:
  std::vector<Node> nodes_;
  std::unordered_multimap<std::size_t, NodeId> by_hash_;
  std::vector<std::pair<NodeId, std::string>> names_;
  std::unordered_map<NodeId, std::size_t> name_index_;  // where in names_
  std::unordered_map<std::string, std::int64_t> symbol_index_;
};

// The nodes that a program's signature names: divisors, picks and defaults of its operands, divisors, picks and values
// of its results.
std::vector<NodeId> roots(const Program& program);

// True for the nodes that results (and the defaults and divisors of operands and results) reach.
std::vector<bool> reachable(const Program& program);

// Is the op among the nodes that are reachable?
bool has(const Program& program, Op op);

// By operand: does a node that is reachable read it?
std::vector<bool> read_operands(const Program& program);

// Does it sum over rows? [i, j / g] sums inside a row.
bool sums_over_rows(const Program& program, const Output& result);

// Rows of a block of its column sums, where all are per column.
std::int64_t row_block_of(const Program& program, std::int64_t rows, std::int64_t columns);

// The node's value as a number, if it is one.
std::optional<double> as_number(const Program& program, NodeId id);

}  // namespace trireme
