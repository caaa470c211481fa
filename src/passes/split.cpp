#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "ir/groups.hpp"
#include "ir/rewrite.hpp"
#include "ir/verify.hpp"
#include "language/print_expression.hpp"
#include "math/reductions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

// A value's level is how many reductions stand one upon another below it; the stage of that number computes it. What a
// reduction sums is one level below the reduction's own value, because the exchange lies between.
class Splitter {
 public:
  explicit Splitter(const Program& program)
      : in_(with_row_sums(with_folds(program))),
        wanted_(in_.size()),
        level_(in_.size()),
        other_total_(in_.size(), no_node) {}

  Result<std::vector<SplitStage>> run() {
    mark_wanted();
    TRIREME_CHECK(check_columns());
    choose_names();
    int last = 0;
    for (const Output& result : in_.results) last = std::max(last, level_[result.value]);
    std::vector<SplitStage> stages;
    for (int stage = 0; stage <= last; ++stage) {
      TRIREME_TRY(made, build(stage, last));
      TRIREME_CHECK(verify(made.program));
      stages.push_back(std::move(made));
    }
    return stages;
  }

 private:
  // ---- what there is ----

  // Composed reductions as the totals that parts exchange; means stay as they are written.
  static Program with_folds(const Program& program) {
    return rewrite(program, [](Program& out, const Node& node, std::span<const NodeId> args) {
      if (node.op == Op::Fold) {  // its totals are exchanged together
        const std::int64_t first = node.payload - node.payload % 2;
        const std::array totals = {out.add(Op::Fold, args, first), out.add(Op::Fold, args, first + 1)};
        return totals[static_cast<std::size_t>(node.payload % 2)];
      }
      if (node.op != Op::Reduce && node.op != Op::ReduceSpread) return copy_node(out, node, args);
      return expanded_reduction(out, node, args[0]);
    });
  }

  // A sum over rows into a result without columns adds the rows' sums, which parts exchange as they do others.
  static Program with_row_sums(Program program) {
    for (Output& result : program.results)
      if (sums_rows(program, result)) {
        const NodeId row = program.add(Op::Sum, {program[result.value].args[0]});
        result.value = program.add(Op::ColumnSum, {row});
      }
    return program;
  }

  static bool sums_rows(const Program& program, const Output& result) {
    return !result.spread.column.present && program[result.value].op == Op::ColumnSum;
  }

  // Each row's total once, in the first column: -0 is what adds nothing.
  static NodeId sum_over_rows(Program& out, NodeId total) {
    const NodeId column = out.add(Op::ColumnIndex);
    const NodeId first = out.add(Op::Equal, {column, out.number(0)});
    const NodeId once = out.add(Op::Select, {first, total, out.number(-0.0)});
    return out.add(Op::ColumnSum, {once});
  }

  void mark_wanted() {
    for (const Output& result : in_.results) wanted_[result.value] = true;
    for (NodeId id = static_cast<NodeId>(in_.size()); id-- > 0;)
      if (wanted_[id])
        for (NodeId arg : in_[id]) wanted_[arg] = true;
    for (NodeId id = 0; id < in_.size(); ++id) {
      for (NodeId arg : in_[id]) level_[id] = std::max(level_[id], level_[arg]);
      if (is_row_reduction(in_[id].op)) ++level_[id];
    }
    std::map<std::pair<std::vector<NodeId>, std::int64_t>, NodeId> totals;  // by arguments and which
    for (NodeId id = 0; id < in_.size(); ++id)
      if (in_[id].op == Op::Fold) totals[{{in_[id].begin(), in_[id].end()}, in_[id].payload}] = id;
    for (const auto& [which, id] : totals) {
      auto other = totals.find({which.first, which.second ^ 1});
      if (other == totals.end()) continue;
      other_total_[id] = other->second;
      wanted_[id] = wanted_[id] || wanted_[other->second];
    }
  }

  Error wrong(std::string message) const {
    return {Code::Unsupported,
            in_.name + " cannot be split: " + message + "; its rows may be spread, each in one place"};
  }

  // A part of a row knows its own columns only. Groups of neighbours are the part's own where it holds whole ones.
  Status check_columns() const {
    auto check = [&](const std::string& name, const Spread& spread) -> Status {
      if (spread.column.plain() || (is_group(spread.column) && spread.column.wrap == no_node)) return Done{};
      return wrong("'" + name + "' wraps j, and every part of a row has columns of all its entries");
    };
    for (NodeId id = 0; id < in_.size(); ++id) {
      if (!wanted_[id]) continue;
      if (in_[id].op == Op::Rotate) return wrong("rotate reads columns of other parts");
      if (in_[id].op == Op::Group && group_of(in_[id]).entries) return wrong("entries are those of the whole row");
      if (in_[id].op == Op::Group && group_of(in_[id]).wraps)
        return wrong("every part of a row has columns of all groups j % g");
      std::optional<std::size_t> operand;
      if (in_[id].op == Op::Operand) operand = static_cast<std::size_t>(in_[id].payload);
      if (names_symbol(in_[id].op)) operand = in_.find_operand(in_.symbols[in_[id].payload]);
      if (operand) TRIREME_CHECK(check(in_.operands[*operand].name, in_.operands[*operand].spread));
    }
    for (const Output& result : in_.results) TRIREME_CHECK(check(result.name, result.spread));
    return Done{};
  }

  void choose_names() {
    std::set<std::string> taken;
    for (const Operand& operand : in_.operands) taken.insert(operand.name);
    for (const Output& result : in_.results) taken.insert(result.name);
    for (const auto& [id, name] : in_.names()) taken.insert(name);
    auto fresh = [&](std::string name) {
      while (!taken.insert(name).second) name += "_";
      return name;
    };
    columns_ = fresh("columns");
    first_column_ = fresh("first_column");
    names_.resize(in_.size());
    is_total_.resize(in_.size());
    int count = 0;
    std::map<std::tuple<Op, std::int64_t, std::vector<NodeId>>, NodeId> totals;  // a sum and a mean have the same one
    for (NodeId id = 0; id < in_.size(); ++id) {
      const Node& node = in_[id];
      if (!wanted_[id] || !is_row_reduction(node.op)) continue;
      auto [first, is_new] = totals.try_emplace({exchange_of(node.op), node.payload, {node.begin(), node.end()}}, id);
      is_total_[id] = is_new;
      names_[id] = is_new ? fresh(std::string(name_of(node)) + "_" + std::to_string(++count)) : names_[first->second];
    }
  }

  static Op exchange_of(Op op) { return op == Op::Mean ? Op::Sum : op; }
  static std::string_view name_of(const Node& node) {
    return node.op == Op::Fold ? name_of_total(node.payload) : facts(exchange_of(node.op)).name;
  }

  // ---- one stage ----

  // Read from memory instead of computed: what other parts had a share in, and what an earlier stage stored as it is.
  bool is_exchanged(NodeId id, int stage) const { return is_row_reduction(in_[id].op) && level_[id] <= stage; }
  const Output* stored_before(NodeId id, int stage) const {
    if (in_[id].op != Op::Cast || level_[id] >= stage) return nullptr;
    for (const Output& result : in_.results)
      if (result.value == id && result.name == in_.symbols[in_[id].payload] && in_[id].by_row && in_[id].by_column)
        return &result;
    return nullptr;
  }

  struct Stage {
    Program program;
    std::vector<bool> needed;
    std::vector<NodeId> moved;
    NodeId columns = no_node, first_column = no_node;
  };

  Result<SplitStage> build(int stage, int last) {
    Stage work{{}, std::vector<bool>(in_.size()), std::vector<NodeId>(in_.size(), no_node)};
    SplitStage made;
    Program& out = work.program;
    out.name = in_.name + (stage == last ? "_rest" : "_part" + std::to_string(stage + 1));
    std::vector<NodeId> partial;
    for (NodeId id = 0; id < in_.size(); ++id)
      if (is_total_[id] && level_[id] == stage + 1) partial.push_back(id);
    for (const Output& result : in_.results)
      if (level_[result.value] == stage) work.needed[result.value] = true;
    for (NodeId id : partial)
      for (NodeId arg : in_[id]) work.needed[arg] = true;
    for (NodeId id = static_cast<NodeId>(in_.size()); id-- > 0;)
      if (work.needed[id] && !is_exchanged(id, stage) && !stored_before(id, stage))
        for (NodeId arg : in_[id]) work.needed[arg] = true;

    TRIREME_CHECK(make_operands(work, stage));
    copy(work, stage);
    for (const Output& result : in_.results)
      if (level_[result.value] == stage) {
        const bool sums = sums_rows(in_, result);
        const NodeId value =
            sums ? sum_over_rows(out, work.moved[in_[result.value].args[0]]) : work.moved[result.value];
        out.results.push_back({result.name, moved_spread(work, result.spread), value});
        if (!result.spread.column.present && in_[result.value].op == Op::ColumnMax)
          made.exchanges.push_back({result.name, Op::Amax});
      }
    for (NodeId id : partial) {
      Op op = exchange_of(in_[id].op);
      std::vector<NodeId> elements;
      for (NodeId arg : in_[id]) elements.push_back(work.moved[arg]);
      out.results.push_back({names_[id], {{true}, {}}, out.add(op, elements, in_[id].payload)});
      if (op != Op::Fold) made.exchanges.push_back({names_[id], op});
      else if (in_[id].payload % 2 == 0)
        made.exchanges.push_back({names_[id], op, names_[other_total_[id]], in_[id].payload / 2});
    }
    for (NodeId id : groups_of(work)) made.groups.push_back(spread_text(out, {{}, {.present = true, .divide = id}}));
    made.program = std::move(out);
    return made;
  }

  // What the stage divides j by, in its own nodes.
  std::vector<NodeId> groups_of(const Stage& work) const {
    std::vector<NodeId> found;
    auto add = [&](NodeId id) {
      if (id != no_node && std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
    };
    for (const Operand& each : work.program.operands) add(each.spread.column.divide);
    for (NodeId id = 0; id < work.program.size(); ++id)
      if (work.program[id].op == Op::Group) add(work.program[id].args[1]);
    for (const Output& each : work.program.results) add(each.spread.column.divide);
    return found;
  }

  // The operands that this stage reads or whose types it needs, in their order, then what was exchanged, then
  // constants.
  Status make_operands(Stage& work, int stage) {
    Program& out = work.program;
    std::vector<bool> used(in_.operands.size());
    std::set<std::string> stored;  // by earlier stages
    bool counts = false, indices = false;
    for (NodeId id = 0; id < in_.size(); ++id) {
      if (!work.needed[id]) continue;
      const Node& node = in_[id];
      if (const Output* result = stored_before(id, stage)) {
        stored.insert(result->name);
        continue;
      }
      if (node.op == Op::Operand || node.op == Op::Constant) used[node.payload] = true;
      if (names_symbol(node.op)) {
        const std::string& symbol = in_.symbols[node.payload];
        std::optional<std::size_t> result = in_.find_result(symbol);
        if (!result) {
          used[*in_.find_operand(symbol)] = true;
        } else if (int level = level_[in_.results[*result].value]; level > stage) {
          return wrong("the type of '" + symbol + "' is needed before it is stored");
        } else if (level < stage) {
          stored.insert(symbol);
        }
      }
      counts = counts || node.op == Op::ColumnCount || (node.op == Op::Mean && is_exchanged(id, stage));
      indices = indices || node.op == Op::ColumnIndex || node.op == Op::Random;
    }
    auto use_divisors = [&](const Spread& spread) {
      for (NodeId id : {spread.row.divide, spread.row.wrap, spread.row.pick, spread.column.divide})
        if (id != no_node) mark_divisor(id, work, used, counts);
    };
    for (std::size_t k = used.size(); k-- > 0;)  // who picks rows stands before whose rows are picked
      if (used[k] && in_.operands[k].spread.row.picked()) use_divisors(in_.operands[k].spread);
    for (const Output& result : in_.results)
      if (level_[result.value] == stage && result.spread.row.picked()) use_divisors(result.spread);
    for (std::size_t k = 0; k < used.size(); ++k)
      if (used[k] && !in_.operands[k].constant) use_divisors(in_.operands[k].spread);
    for (const Output& result : in_.results)
      if (level_[result.value] == stage || stored.contains(result.name)) use_divisors(result.spread);

    place_.assign(in_.operands.size(), -1);
    read_.clear();
    auto keep = [&](bool constant) {
      for (std::size_t k = 0; k < used.size(); ++k)
        if (used[k] && in_.operands[k].constant == constant) {
          place_[k] = static_cast<std::int64_t>(out.operands.size());
          out.operands.push_back({in_.operands[k].name, constant, in_.operands[k].spread});
        }
    };
    auto read = [&](const std::string& name, const Spread& spread) {
      read_[name] = static_cast<std::int64_t>(out.operands.size());
      out.operands.push_back({name, false, spread});
    };
    keep(false);
    for (const Output& result : in_.results)
      if (stored.contains(result.name)) read(result.name, result.spread);
    for (NodeId id = 0; id < in_.size(); ++id)
      if (work.needed[id] && is_exchanged(id, stage) && !read_.contains(names_[id])) read(names_[id], {{true}, {}});
    keep(true);
    auto constant = [&](const std::string& name) {
      out.operands.push_back({name, true});
      return out.add(Op::Constant, {}, static_cast<std::int64_t>(out.operands.size() - 1));
    };
    if (counts) work.columns = constant(columns_);
    if (indices) work.first_column = constant(first_column_);
    return Done{};
  }

  void mark_divisor(NodeId id, Stage& work, std::vector<bool>& used, bool& counts) const {
    work.needed[id] = true;
    if (in_[id].op == Op::Constant || in_[id].op == Op::Operand) used[in_[id].payload] = true;
    counts = counts || in_[id].op == Op::ColumnCount;
    for (NodeId arg : in_[id]) mark_divisor(arg, work, used, counts);
  }

  void copy(Stage& work, int stage) const {
    Program& out = work.program;
    std::set<NodeId> made_with_result;
    for (const Output& result : in_.results)
      if (sums_rows(in_, result)) made_with_result.insert(result.value);
    for (NodeId id = 0; id < in_.size(); ++id)
      if (work.needed[id] && !made_with_result.contains(id)) {
        work.moved[id] = copied(work, id, stage);
        if (const std::string* name = in_.name_of(id); name && out[work.moved[id]].arity > 0)
          out.give_name(work.moved[id], *name);
      }
    for (const Output& result : in_.results)
      if (auto read = read_.find(result.name); read != read_.end())
        out.operands[static_cast<std::size_t>(read->second)].spread = moved_spread(work, result.spread);
    for (std::size_t k = 0; k < in_.operands.size(); ++k) {
      if (place_[k] < 0) continue;
      Operand& operand = out.operands[place_[k]];
      operand.spread = moved_spread(work, operand.spread);
      // An expression says how a saved result is recomputed; here it must be given.
      NodeId fallback = in_.operands[k].fallback;
      if (fallback != no_node && as_number(in_, fallback)) operand.fallback = out.number(*as_number(in_, fallback));
    }
  }

  NodeId copied(Stage& work, NodeId id, int stage) const {
    Program& out = work.program;
    const Node& node = in_[id];
    if (is_exchanged(id, stage)) {
      NodeId total = out.add(Op::Operand, {}, read_.at(names_[id]));
      return node.op == Op::Mean ? out.add(Op::Div, {total, work.columns}) : total;
    }
    if (const Output* result = stored_before(id, stage)) return out.add(Op::Operand, {}, read_.at(result->name));
    std::array<NodeId, 3> args = node.args;
    for (int k = 0; k < node.arity; ++k) args[k] = work.moved[node.args[k]];
    std::span<const NodeId> moved(args.data(), node.arity);
    if (node.op == Op::ColumnCount) return work.columns;
    if (node.op == Op::ColumnIndex) return out.add(Op::Add, {out.add(Op::ColumnIndex), work.first_column});
    if (node.op == Op::Random) return further_on(work, node, args);
    if (node.op == Op::Operand || node.op == Op::Constant) return out.add(node.op, {}, place_[node.payload]);
    if (names_symbol(node.op)) return out.symbol(node.op, in_.symbols[node.payload], moved);
    return out.add(node.op, moved, node.payload);
  }

  // Random numbers are those of the whole row.
  static NodeId further_on(Stage& work, const Node& random, std::array<NodeId, 3> args) {
    Program& out = work.program;
    const bool is_first = random.arity == 1 || as_number(out, args[2]) == 0.0;
    if (random.arity == 1) args[1] = out.number(0);
    args[2] = is_first ? work.first_column : out.add(Op::Add, {args[2], work.first_column});
    return out.add(Op::Random, args, random.payload);
  }

  static Spread moved_spread(const Stage& work, Spread spread) {
    for (NodeId* id : {&spread.row.divide, &spread.row.wrap, &spread.row.pick, &spread.column.divide})
      if (*id != no_node) *id = work.moved[*id];
    return spread;
  }

  const Program in_;
  std::vector<bool> wanted_;
  std::vector<int> level_;
  std::vector<NodeId> other_total_;  // of a fold's total
  std::vector<std::string> names_;   // of what is exchanged
  std::vector<bool> is_total_;       // exchanged, and the first with that name
  std::string columns_, first_column_;
  std::vector<std::int64_t> place_;           // of the program's operands in the stage's signature; -1: not there
  std::map<std::string, std::int64_t> read_;  // of what is exchanged or stored before
};

}  // namespace

Result<std::vector<SplitStage>> split(const Program& program) { return Splitter(program).run(); }

}  // namespace trireme
