#include <cmath>
#include <unordered_map>
#include <vector>

#include "ir/groups.hpp"
#include "ir/integers.hpp"
#include "ir/rewrite.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

// `colsum(e)` into [i, j / g] or [i, j % g] adds no rows up: it is `sum(e, j / g)`, to the bit, whose terms need not
// pass through memory. So is `colmax` of neighbours; of [i, j % g] it says -inf where no column stands, and groups say
// 0.
Program reduce_inside_groups(Program program) {
  for (Output& result : program.results) {
    if (!is_of_groups(result.spread) || !is_column_reduction(program[result.value].op)) continue;
    const Node node = program[result.value];
    const Axis& column = result.spread.column;
    const bool wraps = column.wrap != no_node;
    if (wraps && node.op == Op::ColumnMax) continue;
    result.value = add_group(program, {.op = row_reduction_of(node.op), .wraps = wraps}, node.args[0],
                             wraps ? column.wrap : column.divide);
  }
  return program;
}

// A sum or maximum is the first total of a fold that sweeps over the same elements: the same bits, for nothing.
Program share_first_totals(const Program& program) {
  std::unordered_map<NodeId, std::vector<std::size_t>> folds_over;  // by element
  const std::vector<bool> wanted = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (wanted[id] && program[id].op == Op::Fold)
      folds_over[program[id].args[0]].push_back(static_cast<std::size_t>(program[id].payload / 2));
  return rewrite(program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    if (node.op == Op::Sum || node.op == Op::Amax)
      if (auto over = folds_over.find(node.args[0]); over != folds_over.end())
        for (std::size_t fold : over->second)
          if (folds()[fold].first == node.op && !folds()[fold].weighted) return totals_of(fold, {&out, args[0]})[0].id;
    return copy_node(out, node, args);
  });
}

// sum(select(j == t, e, 0)), t an integer of the row, has one term: it is loaded, and no column is compared. Where e
// needs a reduction it stays a sum, so that picked elements are read before anything is stored over them.
Program pick_columns(const Program& program) {
  std::vector<bool> reduces;  // by node of what is made: itself or something below it
  auto look_at_new = [&](const Program& out) {
    for (NodeId id = static_cast<NodeId>(reduces.size()); id < out.size(); ++id) {
      bool found = is_row_reduction(out[id].op) || out[id].op == Op::Group;
      for (NodeId arg : out[id]) found = found || reduces[arg];
      reduces.push_back(found);
    }
  };
  return rewrite(program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    look_at_new(out);
    if (node.op != Op::Sum || out[args[0]].op != Op::Select) return copy_node(out, node, args);
    const std::array<NodeId, 3> choice = out[args[0]].args;
    const Node condition = out[choice[0]], otherwise = out[choice[2]];
    const bool zero = otherwise.op == Op::Number && otherwise.payload == 0;  // the bits of +0
    if (zero && condition.op == Op::Equal && compares_integers(out, condition) && !reduces[choice[1]])
      for (int k : {0, 1}) {
        const NodeId column = condition.args[1 - k];
        if (out[condition.args[k]].op == Op::ColumnIndex && !out[column].by_column && out[column].op != Op::Rotate)
          return out.add(Op::PickColumn, {choice[1], column});
      }
    return copy_node(out, node, args);
  });
}

// Rotations sink to the leaves: a value `shift` columns further on is the same expression over leaves that are read
// further on. A group's value is a leaf too: what it is made of stays where it stands. Results are followed down, so
// that what is rotated twice is made once, for both together.
class Sinker {
 public:
  explicit Sinker(const Program& program)
      : in_(program), out_(with_signature_of(program)), most_nodes_((std::size_t{1} << 18) + 16 * program.size()) {}

  Result<Program> run() {
    for (NodeId root : roots(in_))
      if (!sink({root, no_node}))
        return Error{Code::Unsupported, in_.name + ": rotations inside rotations make more than " +
                                            std::to_string(most_nodes_) + " nodes of " + std::to_string(in_.size())};
    follow_roots(in_, out_, [&](NodeId id) { return made({id, no_node}); });
    return std::move(out_);
  }

 private:
  // A node of the program, and how far on: a node of the new one, or none.
  struct Place {
    NodeId id, shift;
    std::uint64_t key() const { return std::uint64_t{id} << 32 | shift; }
  };

  NodeId made(Place place) const {
    auto it = made_.find(place.key());
    return it == made_.end() ? no_node : it->second;
  }

  Place argument(Place place, int k) {
    const Node& node = in_[place.id];
    NodeId arg = node.args[k];
    if (!in_[arg].by_column || node.op == Op::Group) return {arg, no_node};  // groups are of columns as they stand
    return {arg, node.op == Op::Rotate ? further(place.shift, made({node.args[1], no_node})) : place.shift};
  }

  // Two rotations in one; numbers are those that bind made, of whole columns.
  NodeId further(NodeId a, NodeId b) {
    if (a == no_node) return b;
    std::optional<double> x = as_number(out_, a), y = as_number(out_, b);
    bool exact = x && y && std::fabs(*x + *y) < 0x1p53;
    return exact ? out_.number(*x + *y) : out_.add(Op::Add, {b, a});
  }

  bool sink(Place root) {
    std::vector<Place> open = {root};
    while (!open.empty() && out_.size() <= most_nodes_) {
      const Place place = open.back();
      const Node& node = in_[place.id];
      const bool rotates = node.op == Op::Rotate;
      bool waits = false;
      auto need = [&](Place other) {
        if (made(other) == no_node) open.push_back(other), waits = true;
      };
      if (rotates) need({node.args[1], no_node});
      for (int k = rotates ? 1 : node.arity; k-- > 0 && !waits;) need(argument(place, k));
      if (waits) continue;
      made_[place.key()] = rotates ? made(argument(place, 0)) : copied(place);
      open.pop_back();
    }
    return open.empty();
  }

  NodeId copied(Place place) {
    const Node& node = in_[place.id];
    std::array<NodeId, 3> args;
    for (int k = 0; k < node.arity; ++k) args[k] = made(argument(place, k));
    NodeId id = out_.add(node.op, std::span<const NodeId>(args.data(), node.arity), node.payload);
    bool leaf = node.op == Op::Operand || node.op == Op::ColumnIndex || node.op == Op::Random || node.op == Op::Group;
    return leaf && place.shift != no_node ? out_.add(Op::Rotate, {id, place.shift}) : id;
  }

  const Program& in_;
  Program out_;
  const std::size_t most_nodes_;  // a program of a few lines can ask for more than any memory holds
  std::unordered_map<std::uint64_t, NodeId> made_;
};

}  // namespace

Result<Program> expand(const Program& program) {
  Program out = reduce_inside_groups(expand_calls(expand_reductions(program)));
  if (has(out, Op::Fold)) out = share_first_totals(out);
  if (has(out, Op::Rotate)) {
    TRIREME_TRY(sunk, Sinker(out).run());
    out = std::move(sunk);
  }
  return pick_columns(out);
}

}  // namespace trireme
