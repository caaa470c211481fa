// Print -> parse -> print is the identity because the printer decides nothing that parsing its text would change:
//
// - Every node but a leaf is written once: inside one line, or as a line of its own that others name. A node gets a
//   line if it has a name, if several nodes use it, or if the line of its user would grow too long.
// - Lines stand in the order of their nodes, which is the order in which the parser will make them. Defaults and
//   divisors in the signature are written there as trees, so their nodes come first.
// - A line whose value is a leaf or belongs to another line makes no node; such lines stand last.
#include "language/print.hpp"

#include <algorithm>
#include <unordered_set>

#include "language/names.hpp"
#include "language/print_expression.hpp"

namespace trireme {
namespace {

constexpr std::size_t line_width = 100;       // of an expression; beyond it parts get lines of their own
constexpr std::size_t signature_width = 120;  // of a whole line
constexpr int deepest_nesting = 24;           // far within the parser's limit, and about what a reader can follow
constexpr int inline_default_nodes = 32;      // a longer default of an operand becomes a line
constexpr std::size_t widest_made_up_name = 9;
constexpr std::size_t widest_padding = 16;

class Printer {
 public:
  explicit Printer(const Program& program)
      : program_(program),
        spreads_(program),
        in_body_(program.size()),
        order_(program.size()),
        uses_(program.size()),
        has_line_(program.size()),
        names_(program.size()) {}

  std::string run() {
    order_signature();
    mark_body();
    count_uses();
    take_names();
    cut_long_lines();
    collect_lines();
    std::string text = signature();
    std::size_t padding = 0;
    for (const Line& line : lines_) padding = std::max(padding, std::min(line.target.size(), widest_padding));
    for (const Line& line : lines_) {
      text += "    " + line.target;
      text.append(line.target.size() < padding ? padding - line.target.size() : 0, ' ');
      text += " = " + (line.whole ? whole(line.value) : reference(line.value)).text + "\n";
    }
    return text;
  }

 private:
  struct Line {
    std::string target;
    NodeId value;
    bool whole;  // written out, not named
  };

  bool is_leaf(NodeId id) const { return program_[id].arity == 0; }
  bool is_column_sum(NodeId id) const { return is_column_reduction(program_[id].op); }
  bool is_deferred(const Operand& operand) const {
    return operand.fallback != no_node && !fits_inline(operand.fallback);
  }

  // Whether a default is short enough to stand in the signature, where nothing can be named.
  bool fits_inline(NodeId id) const {
    int budget = inline_default_nodes;
    return spend(id, budget);
  }
  bool spend(NodeId id, int& budget) const {
    if (--budget < 0) return false;
    for (NodeId arg : program_[id])
      if (!spend(arg, budget)) return false;
    return true;
  }

  // The order in which the parser meets the nodes of the signature.
  void order_signature() {
    auto spread = [&](const Spread& spread) {
      for (NodeId id : nodes_of(spread))
        if (id != no_node) order_tree(id);
    };
    for (const Operand& operand : program_.operands) {
      spread(operand.spread);
      if (operand.fallback != no_node && !is_deferred(operand)) order_tree(operand.fallback);
    }
    for (const Output& result : program_.results) spread(result.spread);
  }
  void order_tree(NodeId id) {
    for (NodeId arg : program_[id]) order_tree(arg);
    if (order_[id] == 0) order_[id] = ++ordered_;
  }

  // The nodes that lines are made of.
  void mark_body() {
    for (const Operand& operand : program_.operands)
      if (is_deferred(operand)) in_body_[operand.fallback] = true;
    for (const Output& result : program_.results)
      if (result.value != no_node) in_body_[result.value] = true;
    for (NodeId id = static_cast<NodeId>(program_.size()); id-- > 0;)
      if (in_body_[id])
        for (int k = 0; k < written_arguments(program_[id]); ++k) in_body_[program_[id].args[k]] = true;
    for (NodeId id = 0; id < program_.size(); ++id)
      if (in_body_[id] && order_[id] == 0) order_[id] = ++ordered_;
    for (NodeId id = 0; id < program_.size(); ++id)
      if (in_body_[id]) body_.push_back(id);
    std::sort(body_.begin(), body_.end(), [&](NodeId a, NodeId b) { return order_[a] < order_[b]; });
  }

  void count_uses() {
    for (NodeId id : body_)
      for (int k = 0; k < written_arguments(program_[id]); ++k) ++uses_[program_[id].args[k]];
    for (const Operand& operand : program_.operands)
      if (is_deferred(operand)) ++uses_[operand.fallback];
    // Results with the same column sum, spread differently, are each written out.
    std::vector<bool> seen(program_.size());
    for (const Output& result : program_.results) {
      if (result.value == no_node || !is_column_sum(result.value)) continue;
      if (seen[result.value]) ++uses_[program_[result.value].args[0]];
      seen[result.value] = true;
    }
    for (NodeId id : body_)
      if (uses_[id] > 1 && !is_leaf(id)) has_line_[id] = true;
  }

  // The first result with a value names it; other names follow, unless they are taken or not names at all.
  void take_names() {
    for (const Operand& operand : program_.operands) taken_.insert(operand.name);
    for (const Output& result : program_.results) taken_.insert(result.name);
    auto take = [&](NodeId id, std::string_view name) {
      has_line_[id] = true;
      names_[id] = name;
    };
    auto nameable = [&](NodeId id) { return in_body_[id] && !is_leaf(id) && !is_column_sum(id) && names_[id].empty(); };
    for (const Output& result : program_.results)
      if (result.value != no_node && nameable(result.value)) take(result.value, result.name);
    for (const auto& [id, name] : program_.names())
      if (nameable(id) && is_plain_name(name) && taken_.insert(name).second) take(id, name);
  }

  // Names are made up later, in the order of the lines; until then the widest one stands for each. Parsed again, a
  // line is therefore never longer than it was measured here, and nothing more is cut.
  Phrase reference(NodeId id) const {
    if (is_leaf(id)) return phrase(program_, id, {}, spreads_);
    return {.text = names_[id].empty() ? std::string(widest_made_up_name, 't') : names_[id]};
  }

  void cut_long_lines() {
    std::vector<Phrase> phrases(program_.size());
    for (NodeId id : body_) {
      if (is_leaf(id)) continue;
      const Node& node = program_[id];
      while (true) {
        Phrase args[3];
        NodeId longest = no_node;
        for (int k = 0; k < written_arguments(node); ++k) {
          NodeId arg = node.args[k];
          bool named = is_leaf(arg) || has_line_[arg];
          args[k] = named ? reference(arg) : phrases[arg];
          auto weight = [&](NodeId each) { return phrases[each].text.size() + 4 * phrases[each].nesting; };
          if (!named && (longest == no_node || weight(arg) > weight(longest))) longest = arg;
        }
        phrases[id] = phrase(program_, id, std::span<const Phrase>(args, node.arity), spreads_);
        bool fine = phrases[id].text.size() <= line_width && phrases[id].nesting <= deepest_nesting;
        if (fine || longest == no_node) break;
        has_line_[longest] = true;
      }
      for (NodeId arg : node) phrases[arg] = {};  // one user has seen it; others only name it
    }
  }

  void collect_lines() {
    std::vector<std::string_view> owner(program_.size());  // of values that are written out, but not named
    auto own = [&](NodeId id, std::string_view name) {
      if (id != no_node && !is_leaf(id) && !has_line_[id] && owner[id].empty()) owner[id] = name;
    };
    for (const Operand& operand : program_.operands)
      if (is_deferred(operand)) own(operand.fallback, operand.name);
    for (const Output& result : program_.results) own(result.value, result.name);

    std::size_t made_up = 0;
    for (NodeId id : body_) {
      if (!has_line_[id] && owner[id].empty()) continue;
      if (has_line_[id])
        while (names_[id].empty()) {
          std::string name = "t" + std::to_string(++made_up);
          if (taken_.insert(name).second) names_[id] = name;
        }
      lines_.push_back({has_line_[id] ? names_[id] : std::string(owner[id]), id, true});
    }
    auto repeat = [&](NodeId id, const std::string& name) {
      if (id == no_node || owner[id] == name || names_[id] == name) return;
      lines_.push_back({name, id, is_column_sum(id)});
    };
    for (const Operand& operand : program_.operands)
      if (is_deferred(operand)) repeat(operand.fallback, operand.name);
    for (const Output& result : program_.results) repeat(result.value, result.name);
  }

  // A node written out, down to what has a line of its own; `tree`: all the way down.
  Phrase whole(NodeId id, bool tree = false) const {
    const Node& node = program_[id];
    Phrase args[3];
    for (int k = 0; k < written_arguments(node); ++k) {
      NodeId arg = node.args[k];
      args[k] = is_leaf(arg) || (has_line_[arg] && !tree) ? reference(arg) : whole(arg, tree);
    }
    return phrase(program_, id, std::span<const Phrase>(args, node.arity), spreads_);
  }

  std::string signature() const {
    std::vector<std::string> operands, results;
    auto in_memory = [&](const std::string& name, const Spread& spread, std::optional<Type> type) {
      return name + spread_text(program_, spread) + (type ? ": " + std::string(name_of(*type)) : "");
    };
    for (const Operand& operand : program_.operands) {
      std::string text = operand.constant ? operand.name : in_memory(operand.name, operand.spread, operand.type);
      if (operand.fallback != no_node)
        text += " = " + (is_deferred(operand) ? "..." : whole(operand.fallback, true).text);
      operands.push_back(std::move(text));
    }
    for (const Output& result : program_.results) results.push_back(in_memory(result.name, result.spread, result.type));

    std::string text, line = program_.name + "(";
    auto put = [&](const std::string& part) {
      if (line.size() + part.size() > signature_width && line.find_first_not_of(' ') != std::string::npos) {
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
        line = "        ";
      }
      line += part;
    };
    for (const std::string& each : operands) put(each + (&each == &operands.back() ? "" : ", "));
    line += ") -> (";
    for (const std::string& each : results) put(each + (&each == &results.back() ? "" : ", "));
    line += ")";
    if (program_.compute) line += " in " + std::string(name_of(*program_.compute));
    return text + line + "\n";
  }
  static std::string_view name_of(Type type) { return trireme::name(type); }

  const Program& program_;
  mutable ColumnSpreads spreads_;
  std::vector<bool> in_body_;
  std::vector<std::uint32_t> order_;  // 0: not written
  std::uint32_t ordered_ = 0;
  std::vector<NodeId> body_;  // in order
  std::vector<std::uint32_t> uses_;
  std::vector<bool> has_line_;
  std::vector<std::string> names_;
  std::unordered_set<std::string> taken_;
  std::vector<Line> lines_;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run(); }

}  // namespace trireme
