#include "ir/verify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_set>

#include "ir/groups.hpp"
#include "ir/index_arithmetic.hpp"
#include "ir/integers.hpp"

namespace trireme {
namespace {

bool is_name(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return text != "i" && text != "j" && text != "n" && text != "inf" && text != "nan";
}

bool is_bits(Op op) {
  return op == Op::BitsAdd || op == Op::BitsAnd || op == Op::BitsOr || op == Op::BitsShiftLeft ||
         op == Op::BitsShiftRight;
}

// `budget` bounds the walk over a tree whose branches may be shared.
bool is_arithmetic_of_constants(const Program& program, NodeId id, int& budget) {
  if (--budget < 0) return false;
  const Node& node = program[id];
  const bool leaf = node.op == Op::Number || node.op == Op::Constant || node.op == Op::ColumnCount;
  const bool arithmetic = node.op == Op::Neg || (node.op >= Op::Add && node.op <= Op::Div);
  return (leaf || arithmetic) && std::all_of(node.begin(), node.end(), [&](NodeId arg) {
           return is_arithmetic_of_constants(program, arg, budget);
         });
}

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program), spreads_(program), wanted_(reachable(program)), is_seed_(program.size()) {
    for (NodeId id = 0; id < program.size(); ++id)
      if (program[id].op == Op::Random) is_seed_[program[id].args[0]] = true;
  }

  Status run() {
    TRIREME_CHECK(signature());
    for (NodeId id = 0; id < program_.size(); ++id)
      if (wanted_[id]) TRIREME_CHECK(node(id));
    mark_what_nodes_read();
    for (std::size_t k = 0; k < program_.operands.size(); ++k) TRIREME_CHECK(operand(k));
    for (const Output& each : program_.results) TRIREME_CHECK(result(each));
    return Done{};
  }

 private:
  Error wrong(std::string message) const { return {Code::InvalidProgram, program_.name + ": " + message}; }
  Error wrong(NodeId id, std::string message) const {
    return wrong("node " + std::to_string(id) + " (" + std::string(facts(program_[id].op).name) + ") " + message);
  }
  bool exists(NodeId id) const { return id < program_.size(); }

  Status signature() {
    if (!is_name(program_.name)) return wrong("the program's name is not a name");
    if (program_.results.empty()) return wrong("there is no result");
    std::unordered_set<std::string_view> seen;
    auto check = [&](std::string_view name) -> Status {
      if (!is_name(name)) return wrong("'" + std::string(name) + "' is no name for an operand or result");
      if (!seen.insert(name).second) return wrong("the name '" + std::string(name) + "' is defined twice");
      return Done{};
    };
    for (const Operand& each : program_.operands) TRIREME_CHECK(check(each.name));
    for (const Output& each : program_.results) TRIREME_CHECK(check(each.name));
    for (const Operand& each : program_.operands)
      if (!each.constant) in_memory_.insert(each.name);
    for (const Output& each : program_.results) in_memory_.insert(each.name);
    if (program_.compute && *program_.compute != Type::F32 && *program_.compute != Type::F64)
      return wrong("the compute type is neither f32 nor f64");
    return Done{};
  }

  // A bound program has a storage type for everything in memory, an unbound one for nothing.
  Status type(const std::string& name, bool has_type) const {
    if (has_type == program_.compute.has_value()) return Done{};
    return wrong("'" + name + (has_type ? "' has a type, but the program is not bound" : "' has no type"));
  }

  Status node(NodeId id) {
    const Node& node = program_[id];
    const OpFacts& fact = facts(node.op);
    const bool weighted = node.op == Op::Fold && node.arity == 2;
    const bool placed = node.op == Op::Random && node.arity == 3;
    if (node.op == Op::Call ? node.arity < 1 : node.arity != fact.arity && !weighted && !placed)
      return wrong(id, "has " + std::to_string(node.arity) + " arguments");
    for (int k = 0; k < node.arity; ++k) {
      NodeId arg = node.args[k];
      if (arg >= id) return wrong(id, "stands before its argument " + std::to_string(arg));
      if (is_column_reduction(program_[arg].op))
        return wrong(id, "uses a " + std::string(facts(program_[arg].op).name) + ", which only a result may be");
      if (is_condition(program_[arg].op) != takes_condition(node.op, k))
        return wrong(id, std::string("needs a ") + (takes_condition(node.op, k) ? "condition" : "value") +
                             " as its argument " + std::to_string(k + 1));
    }
    return payload(id, node);
  }

  Status payload(NodeId id, const Node& node) {
    auto below = [&](std::uint64_t limit) {
      return node.payload >= 0 && static_cast<std::uint64_t>(node.payload) < limit;
    };
    if (node.op == Op::Number && std::isnan(node.number()) &&
        node.payload != std::bit_cast<std::int64_t>(std::numeric_limits<double>::quiet_NaN()))
      return wrong(id, "is a NaN other than the quiet one; text cannot tell them apart");
    if (node.op == Op::Constant || node.op == Op::Operand) {
      if (!below(program_.operands.size())) return wrong(id, "names no operand");
      const Operand& operand = program_.operands[node.payload];
      if (operand.constant != (node.op == Op::Constant)) return wrong(id, "mistakes what '" + operand.name + "' is");
      if (node.by_row != operand.spread.row.present || node.by_column != operand.spread.column.present)
        return wrong(id, "was made with another spread than that of '" + operand.name + "'");
    }
    if (names_symbol(node.op)) {
      if (!below(program_.symbols.size())) return wrong(id, "names no symbol");
      if (program_.compute) return wrong(id, "is left in a bound program");
      const std::string& symbol = program_.symbols[node.payload];
      if (!in_memory_.contains(symbol))
        return wrong(id, "names '" + symbol + "', which is neither an operand in memory nor a result");
    }
    if ((is_bits(node.op) || node.op == Op::RoundTo || node.op == Op::PickColumn) && !program_.compute)
      return wrong(id, "needs a bound program, whose compute type is known");
    if ((node.op == Op::BitsShiftLeft || node.op == Op::BitsShiftRight) && !below(8 * bytes(*program_.compute)))
      return wrong(id, "shifts by " + std::to_string(node.payload) + ", beyond the compute type's width");
    if (node.op == Op::RoundTo && !below(type_facts.size())) return wrong(id, "names no type");
    if (node.op == Op::PickColumn && (program_[node.args[1]].by_column || !is_integer_leaf(program_, node.args[1])))
      return wrong(id, "needs an integer of the row as its column");
    if (node.op == Op::Div && node.payload && (node.payload != 1 || as_number(program_, node.args[0]) != 1.0))
      return wrong(id, "marks its divisor, and is not a reciprocal");
    if ((node.op == Op::Fold || node.op == Op::Reduce || node.op == Op::ReduceSpread) && node.payload < 0)
      return wrong(id, "names no reduction");
    if (node.op == Op::Call && node.payload < 0) return wrong(id, "names no function");
    for (NodeId arg : node)
      if (node.op != Op::Random && is_seed_[arg]) return wrong(id, "uses a seed as a number");
    if (node.op == Op::Random) {
      const Node& seed = program_[node.args[0]];
      if (seed.op != Op::Operand || seed.by_row || seed.by_column)
        return wrong(id, "takes its seed from an operand with one value");
      if (const std::optional<Type> type = program_.operands[seed.payload].type; type && type != Type::I64)
        return wrong(id, "takes a seed of i64");
      if (!below(std::uint64_t{1} << 32)) return wrong(id, "has no stream below 2^32");
      return first_place(id, node);
    }
    if (node.op == Op::Group) return group(id, node);
    return node.op == Op::Rotate ? rotation(id, node.args[1]) : Done{};
  }

  Status group(NodeId id, const Node& node) {
    if (node.payload < 0 || node.payload >= group_payloads) return wrong(id, "names no reduction");
    if (!is_divisor(program_, node.args[1]))
      return wrong(id, "needs a positive integer as its group, by short arithmetic of constants, n and numbers");
    const GroupReduction kind = group_of(node);
    const ColumnSpread entries{ColumnSpread::Kind::Group, kind.wraps, node.args[1]};
    if (kind.entries && !trireme::fits(spreads_[node.args[0]], entries))
      return wrong(id, "runs over the entries of a value that has not one for each of its groups");
    return Done{};
  }

  Status first_place(NodeId id, const Node& node) const {
    for (int k = 1; k < node.arity; ++k) {
      const NodeId first = node.args[k];
      if (!is_constant_expression(program_, first) || counts_columns(program_, first))
        return wrong(id, "needs short arithmetic of constants and numbers");
      if (program_.compute && program_[first].op != Op::Number) return wrong(id, "starts where nobody knows");
      if (const Status good = check_first(program_, first, k == 1); !good) return wrong(good.error().message);
    }
    return Done{};
  }

  Status rotation(NodeId id, NodeId by) const {
    if (!is_constant_expression(program_, by)) return wrong(id, "needs short arithmetic of constants, numbers and n");
    auto value = index_value(program_, by, {}, a_rotation);
    if (!value) return wrong(value.error().message);
    return Done{};
  }

  // The last operand in memory that each node reads, as its index plus 1.
  void mark_what_nodes_read() {
    operands_read_.assign(program_.size(), 0);
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (!wanted_[id]) continue;
      const Node& node = program_[id];
      if (node.op == Op::Operand) operands_read_[id] = static_cast<std::size_t>(node.payload) + 1;
      for (NodeId arg : node) operands_read_[id] = std::max(operands_read_[id], operands_read_[arg]);
    }
  }

  // `before`: the operands that stand before.
  Status pick(const std::string& name, const Spread& spread, std::size_t before) const {
    if (spread.row.picked() && before == program_.operands.size() && spread.column.divided())
      return wrong("the result '" + name + "' divides its columns where its rows are picked");
    if (spread.column.picked()) return wrong("the columns of '" + name + "' are picked; rows may be");
    if (!spread.row.picked()) return Done{};
    const Node& node = program_[spread.row.pick];
    if (spread.row.divided() || !spread.row.present || node.op != Op::Operand)
      return wrong("a row of '" + name + "' is picked by an operand alone");
    if (static_cast<std::size_t>(node.payload) >= before)
      return wrong("the operand that picks rows of '" + name + "' does not stand before it");
    const Operand& by = program_.operands[node.payload];
    if (before == program_.operands.size() && !(by.spread.row.present && by.spread.row.plain()))
      return wrong("rows of the result '" + name + "' are picked by '" + by.name +
                   "', which has not a value for each row: several rows would be one");
    if (by.spread.column.present || by.spread.row.picked() || by.fallback != no_node)
      return wrong("'" + by.name + "' picks rows of '" + name +
                   "': it has one value a row or one for all, its own place, and no default");
    if (by.type && by.type != Type::I32 && by.type != Type::I64)
      return wrong("'" + by.name + "' picks rows of '" + name + "' and is " + std::string(trireme::name(*by.type)) +
                   "; i32 and i64 do");
    return Done{};
  }

  Status spread(const std::string& name, const Spread& spread) const {
    for (const Axis* axis : {&spread.row, &spread.column}) {
      if (!axis->present && axis->divided()) return wrong("'" + name + "' divides an index it does not have");
      for (NodeId id : {axis->divide, axis->wrap}) {
        if (id != no_node && !is_divisor(program_, id))
          return wrong("an index of '" + name +
                       "' is divided or wrapped by something other than a positive integer, by short arithmetic of "
                       "constants, n and numbers");
      }
    }
    return Done{};
  }

  bool fits(NodeId value, const Spread& spread) {
    const bool row_fits = !program_[value].by_row || (spread.row.present && !spread.row.divided());
    const ColumnSpread wanted = spread.column.present && spread.column.divided() && !is_group(spread.column)
                                    ? ColumnSpread{}
                                    : spread_of(spread.column);
    return row_fits && trireme::fits(spreads_[value], wanted);
  }

  Status operand(std::size_t k) {
    const Operand& operand = program_.operands[k];
    if (operand.constant) {
      if (operand.spread.row.present || operand.spread.column.present || operand.type)
        return wrong("the constant '" + operand.name + "' has a spread or a type");
      if (operand.fallback != no_node && (!exists(operand.fallback) || program_[operand.fallback].op != Op::Number))
        return wrong("the default of the constant '" + operand.name + "' is not a number");
      return Done{};
    }
    TRIREME_CHECK(spread(operand.name, operand.spread));
    TRIREME_CHECK(pick(operand.name, operand.spread, k));
    TRIREME_CHECK(type(operand.name, operand.type.has_value()));
    if (operand.fallback == no_node) return Done{};
    if (!exists(operand.fallback)) return wrong("the default of '" + operand.name + "' does not exist");
    const Node& value = program_[operand.fallback];
    if (is_condition(value.op) || is_column_reduction(value.op))
      return wrong("the default of '" + operand.name + "' is not a value");
    if (!fits(operand.fallback, operand.spread))
      return wrong("the default of '" + operand.name + "' is spread wider than it");
    if (operands_read_[operand.fallback] > k)
      return wrong("the default of '" + operand.name + "' reads an operand that does not stand before it");
    return Done{};
  }

  Status result(const Output& result) {
    TRIREME_CHECK(spread(result.name, result.spread));
    TRIREME_CHECK(pick(result.name, result.spread, program_.operands.size()));
    TRIREME_CHECK(type(result.name, result.type.has_value()));
    if (!exists(result.value)) return wrong("the result '" + result.name + "' has no value");
    const Node& value = program_[result.value];
    if (is_condition(value.op)) return wrong("the result '" + result.name + "' is a condition, not a value");
    if (is_seed_[result.value]) return wrong("the result '" + result.name + "' is a seed, which is no number");
    const bool sums = is_column_reduction(value.op);
    if (sums ? !takes_column_sum(result.spread) : needs_column_sum(result.spread))
      return wrong("the result '" + result.name + "' " +
                   (sums ? "is one value a row or element and takes no " + std::string(facts(value.op).name)
                         : "needs a colsum or a colmax as its value"));
    if (!sums && !fits(result.value, result.spread))
      return wrong("the result '" + result.name + "' is spread narrower than its value");
    return Done{};
  }

  const Program& program_;
  ColumnSpreads spreads_;
  std::vector<bool> wanted_;
  std::unordered_set<std::string_view> in_memory_;  // names of operands in memory and results
  std::vector<std::size_t> operands_read_;
  std::vector<bool> is_seed_;
};

// Every id that reachable() follows must exist before it may be called.
Status ids_exist(const Program& program) {
  auto exists = [&](NodeId id) { return id == no_node || id < program.size(); };
  auto spread_exists = [&](const Spread& spread) {
    const std::array<NodeId, 6> ids = nodes_of(spread);
    return std::all_of(ids.begin(), ids.end(), exists);
  };
  bool good = true;
  for (const Operand& each : program.operands) good = good && exists(each.fallback) && spread_exists(each.spread);
  for (const Output& each : program.results) good = good && exists(each.value) && spread_exists(each.spread);
  for (NodeId id = 0; id < program.size() && good; ++id)
    for (NodeId arg : program[id]) good = good && arg < program.size();
  if (good) return Done{};
  return Error{Code::InvalidProgram, program.name + ": a node that does not exist is referred to"};
}

}  // namespace

bool is_constant_expression(const Program& program, NodeId id) {
  if (program[id].op == Op::Neg) id = program[id].args[0];  // how a backward turns: as short as its forward
  int budget = max_constant_expression_nodes;
  return is_arithmetic_of_constants(program, id, budget);
}

bool counts_columns(const Program& program, NodeId id) {
  const Node& node = program[id];
  return node.op == Op::ColumnCount ||
         std::any_of(node.begin(), node.end(), [&](NodeId arg) { return counts_columns(program, arg); });
}

bool is_divisor(const Program& program, NodeId id) {
  return is_constant_expression(program, id) && check_divisor(program, id);
}

Status verify(const Program& program) {
  TRIREME_CHECK(ids_exist(program));
  return Verifier(program).run();
}

}  // namespace trireme
