#include "passes/saved.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>

#include "ir/groups.hpp"

namespace trireme {
namespace {

// All subsets of this many results are tried; further ones are recomputed.
constexpr std::size_t most_tried = 8;

class Finisher {
 public:
  Finisher(const Program& forward, const Backward& backward)
      : forward_(forward), backward_(backward), in_(backward.program), spreads_(backward.program) {}

  Result<Program> run() {
    choose();
    mark_needed();
    make_signature();
    TRIREME_CHECK(names_are_free());
    copy();
    return std::move(out_);
  }

 private:
  // ---- which results to read ----

  // A result can be read in place of its value if it is stored as it is, and is more than a load already.
  bool can_be_saved(std::size_t k) {
    NodeId value = backward_.saved_values[k];
    if (value == no_node || in_[value].arity == 0) return false;
    const Spread& spread = in_.operands[backward_.first_saved + k].spread;
    if (needs_column_sum(spread) || spread.row.picked()) return false;
    return in_[value].by_row == spread.row.present && spreads_[value] == spread_of(spread.column);
  }

  struct Cost {
    std::array<std::size_t, 4> counts;  // element arrays, row reductions, row arrays, saved results
    bool operator<(const Cost& other) const { return counts < other.counts; }
  };

  Cost cost_of(const std::vector<std::size_t>& saved) const {
    std::vector<bool> read(in_.size()), cut(in_.size());
    for (std::size_t k : saved) cut[backward_.saved_values[k]] = true;
    for (const Output& result : in_.results) read[result.value] = true;
    Cost cost{};
    auto count_array = [&](const Spread& spread) {
      if (spread.row.present) ++cost.counts[spread.column.present && !is_group(spread.column) ? 0 : 2];
    };
    for (NodeId id = static_cast<NodeId>(in_.size()); id-- > 0;) {
      if (!read[id] || cut[id]) continue;
      if (is_row_reduction(in_[id].op) || in_[id].op == Op::ReduceSpread || in_[id].op == Op::Group) ++cost.counts[1];
      if (in_[id].op == Op::Operand) count_array(in_.operands[in_[id].payload].spread);
      for (NodeId arg : in_[id]) read[arg] = true;
    }
    for (std::size_t k : saved)
      if (read[backward_.saved_values[k]]) count_array(forward_.results[k].spread);
    cost.counts[3] = saved.size();
    return cost;
  }

  void choose() {
    std::vector<std::size_t> possible;
    std::set<NodeId> values;  // of one that several results have, the first is tried
    for (std::size_t k = 0; k < forward_.results.size() && possible.size() < most_tried; ++k)
      if (values.insert(backward_.saved_values[k]).second && can_be_saved(k)) possible.push_back(k);
    Cost best = cost_of({});
    for (std::size_t subset = 1; subset < std::size_t{1} << possible.size(); ++subset) {
      std::vector<std::size_t> trial;
      for (std::size_t k = 0; k < possible.size(); ++k)
        if (subset >> k & 1) trial.push_back(possible[k]);
      Cost cost = cost_of(trial);
      if (cost < best) best = cost, saved_ = trial;
    }
    // A value stands after those it is computed from, so a default reads only operands before it.
    std::sort(saved_.begin(), saved_.end(),
              [&](std::size_t a, std::size_t b) { return backward_.saved_values[a] < backward_.saved_values[b]; });
  }

  // ---- the signature ----

  template <typename Visit>
  static void each_divisor(const Spread& spread, Visit&& visit) {
    for (NodeId id : nodes_of(spread))
      if (id != no_node) visit(id);
  }

  // What the results reach, also through divisors and through the defaults of the forward's operands.
  void mark_needed() {
    needed_.resize(in_.size());
    in_default_.resize(in_.size());
    std::vector<NodeId> open;
    auto mark = [&](NodeId id) {
      if (!needed_[id]) needed_[id] = true, open.push_back(id);
    };
    auto mark_default = [&](NodeId id) {
      if (!in_default_[id]) in_default_[id] = true, needed_[id] = true, open.push_back(id);
    };
    for (const Output& result : in_.results) mark(result.value), each_divisor(result.spread, mark);
    for (std::size_t k : saved_) each_divisor(in_.operands[backward_.first_saved + k].spread, mark);
    used_.resize(in_.operands.size());
    auto use = [&](std::size_t k) {
      used_[k] = true;
      each_divisor(in_.operands[k].spread, mark);
      if (!in_.operands[k].constant && in_.operands[k].fallback != no_node) mark_default(in_.operands[k].fallback);
    };
    // cast and largest need the type of what they name: the operand's own, or that of a result's gradient. One that
    // does not arrive is there for largest alone, and not where the result itself is.
    auto is_read_for = [&](std::size_t k, Op op) {
      const bool only_typed = k >= backward_.first_typed && k < backward_.first_operand;
      if (!only_typed) return true;
      return op == Op::Largest && std::none_of(saved_.begin(), saved_.end(), [&](std::size_t saved) {
               return "d" + forward_.results[saved].name == in_.operands[k].name;
             });
    };
    std::unordered_multimap<std::string_view, std::size_t> typed;
    for (std::size_t k = 0; k < backward_.first_saved; ++k)
      typed.emplace(std::string_view(in_.operands[k].name).substr(k < backward_.first_operand ? 1 : 0), k);
    while (!open.empty()) {
      NodeId id = open.back();
      open.pop_back();
      const Node& node = in_[id];
      for (NodeId arg : node) in_default_[id] ? mark_default(arg) : mark(arg);
      if (node.op == Op::Operand || node.op == Op::Constant) use(static_cast<std::size_t>(node.payload));
      if (!names_symbol(node.op)) continue;
      auto [first, last] = typed.equal_range(in_.symbols[node.payload]);
      for (auto it = first; it != last; ++it)
        if (is_read_for(it->second, node.op)) use(it->second);
    }
  }

  void make_signature() {
    place_.assign(in_.operands.size(), -1);
    auto keep = [&](std::size_t k) {
      if (place_[k] >= 0) return;
      // Who picks rows stands before whose rows are picked.
      const Axis& row = in_.operands[k].spread.row;
      const auto by = row.picked() ? static_cast<std::size_t>(in_[row.pick].payload) : k;
      if (by != k && place_[by] < 0) {
        place_[by] = static_cast<std::int64_t>(out_.operands.size());
        out_.operands.push_back(in_.operands[by]);
      }
      place_[k] = static_cast<std::int64_t>(out_.operands.size());
      out_.operands.push_back(in_.operands[k]);
    };
    out_.name = in_.name;
    out_.results = in_.results;
    for (std::size_t k = 0; k < backward_.first_saved; ++k)
      if (used_[k] && !in_.operands[k].constant) keep(k);
    for (std::size_t k : saved_) keep(backward_.first_saved + k);
    for (std::size_t k = 0; k < backward_.first_saved; ++k)
      if (used_[k] && in_.operands[k].constant) keep(k);
  }

  Status names_are_free() {
    for (const Operand& operand : out_.operands)
      if (!taken_.insert(operand.name).second) return collision(operand.name);
    for (const Output& result : out_.results)
      if (!taken_.insert(result.name).second) return collision(result.name);
    return Done{};
  }

  Error collision(const std::string& name) const {
    return {Code::InvalidProgram, forward_.name + ": its backward would have two values called '" + name +
                                      "' (gradients are called d + name); rename '" + name + "'"};
  }

  // ---- the graph ----

  // Rounds as the forward did: to the storage type of what is still there, or of its gradient, which has the same type.
  // What largest names is always there.
  NodeId cast(const Node& node, std::span<const NodeId> args) {
    const std::string& symbol = in_.symbols[node.payload];
    for (const std::string& name : {symbol, "d" + symbol})
      if (taken_.contains(name)) return out_.symbol(node.op, name, args);
    return args[0];
  }

  NodeId copied(const Node& node, std::span<const NodeId> args) {
    bool operand = node.op == Op::Operand || node.op == Op::Constant;
    if (names_symbol(node.op)) return cast(node, args);
    return out_.add(node.op, args, operand ? place_[node.payload] : node.payload);
  }

  // Saved results stand in for their values, but not in the defaults of the forward's operands, which stand before
  // them.
  void copy() {
    std::vector<NodeId> moved(in_.size(), no_node), in_default(in_.size(), no_node);
    auto copy_to = [&](NodeId id, const std::vector<NodeId>& map) {
      std::array<NodeId, 3> args = in_[id].args;
      for (int k = 0; k < in_[id].arity; ++k) args[k] = map[in_[id].args[k]];
      return copied(in_[id], std::span<const NodeId>(args.data(), in_[id].arity));
    };
    for (NodeId id = 0; id < in_.size(); ++id) {
      if (!needed_[id]) continue;
      if (in_default_[id]) in_default[id] = copy_to(id, in_default);
      moved[id] = copy_to(id, moved);
      for (std::size_t k : saved_)
        if (backward_.saved_values[k] == id) {
          std::int64_t place = place_[backward_.first_saved + k];
          out_.operands[place].fallback = moved[id];
          moved[id] = out_.add(Op::Operand, {}, place);
        }
    }
    auto follow = [&](NodeId& id, const std::vector<NodeId>& map) { id = id == no_node ? no_node : map[id]; };
    auto follow_spread = [&](Spread& spread) {
      for (NodeId* id : nodes_of(spread)) follow(*id, moved);
    };
    for (std::size_t k = 0; k < in_.operands.size(); ++k) {
      if (place_[k] < 0) continue;
      Operand& operand = out_.operands[place_[k]];
      follow_spread(operand.spread);
      if (k >= backward_.first_saved) continue;
      if (operand.constant) operand.fallback = number_of(operand.fallback);
      else follow(operand.fallback, in_default);
    }
    for (Output& result : out_.results) follow_spread(result.spread), follow(result.value, moved);
    for (const auto& [id, name] : in_.names())
      if (moved[id] != no_node && out_[moved[id]].arity > 0 && taken_.insert(name).second)
        out_.give_name(moved[id], name);
    name_shared_values();
  }

  // Textbook names for what a backward computes and uses twice: `x_hat` for x scaled by a value of its row, `x_centred`
  // for x less one, `g` for a gradient on its way.
  void name_shared_values() {
    std::size_t gradients = 0;
    for (std::size_t k = 0; k < backward_.first_operand; ++k) gradients += place_[k] >= 0;
    std::vector<int> uses(out_.size());
    std::vector<std::set<std::int64_t>> reads(out_.size());  // element arrays, not through reductions
    std::vector<bool> wanted(out_.size());  // not by the defaults: what they compute is not computed as a rule
    for (const Output& result : out_.results) wanted[result.value] = true;
    for (NodeId id = static_cast<NodeId>(out_.size()); id-- > 0;)
      if (wanted[id])
        for (NodeId arg : out_[id]) wanted[arg] = true;
    for (NodeId id = 0; id < out_.size(); ++id) {
      if (!wanted[id] || !out_[id].by_column) continue;
      const Node& node = out_[id];
      if (node.op == Op::Operand && node.by_row) reads[id].insert(node.payload);
      for (NodeId arg : node) {
        ++uses[arg];
        if (reads[id].size() < 2) reads[id].insert(reads[arg].begin(), reads[arg].end());
      }
    }
    for (NodeId id = 0; id < out_.size(); ++id) {
      const Node& node = out_[id];
      if (uses[id] < 2 || node.arity < 2 || reads[id].size() != 1) continue;
      auto read = static_cast<std::size_t>(*reads[id].begin());
      bool by_row_value = !out_[node.args[1]].by_column && out_[node.args[1]].by_row;
      std::string name;
      if (read < gradients) name = "g";
      else if (by_row_value && (node.op == Op::Mul || node.op == Op::Div)) name = out_.operands[read].name + "_hat";
      else if (by_row_value && node.op == Op::Sub) name = out_.operands[read].name + "_centred";
      if (!name.empty() && !out_.name_of(id) && taken_.insert(name).second) out_.give_name(id, name);
    }
  }

  NodeId number_of(NodeId id) { return id == no_node ? no_node : out_.number(*as_number(in_, id)); }

  const Program& forward_;
  const Backward& backward_;
  const Program& in_;
  ColumnSpreads spreads_;
  Program out_;
  std::vector<std::size_t> saved_;         // results, in order of their values
  std::vector<bool> needed_, in_default_;  // nodes: for the results, for defaults of the forward's operands
  std::vector<bool> used_;                 // operands
  std::vector<std::int64_t> place_;        // of each operand in the new signature; -1: gone
  std::set<std::string> taken_;
};

}  // namespace

Result<Program> finish_backward(const Program& forward, Backward backward) { return Finisher(forward, backward).run(); }

}  // namespace trireme
