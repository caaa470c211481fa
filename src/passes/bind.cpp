#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/build.hpp"
#include "ir/groups.hpp"
#include "ir/index_arithmetic.hpp"
#include "ir/signature_names.hpp"
#include "language/diagnostic.hpp"
#include "math/functions.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

Error invalid(std::string message) { return {Code::InvalidArgument, std::move(message)}; }
std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

// Rebuilds the part of a program that the wanted results need. An absent operand becomes its default, which may stand
// anywhere in the graph, so nodes are visited depth first instead of in their order.
class Binder {
 public:
  Binder(const Program& program, const Binding& binding) : in_(program), binding_(binding), names_(program) {}

  Result<Program> run() {
    TRIREME_CHECK(names_are_known());
    choose_results();
    if (out_.results.empty()) return invalid(in_.name + ": no result is wanted; at least one is needed");
    find_index_constants();
    TRIREME_CHECK(find_needed_operands());
    TRIREME_CHECK(make_signature());
    TRIREME_CHECK(build());
    return std::move(out_);
  }

 private:
  // ---- what the binding says of names ----

  bool is_absent(const Operand& operand) const { return binding_.absent.contains(operand.name); }
  bool is_wanted(const Output& result) const { return !binding_.wanted || binding_.wanted->contains(result.name); }

  std::optional<Type> type_of(std::string_view name) const {
    auto it = binding_.types.find(std::string(name));
    return it == binding_.types.end() ? std::nullopt : std::optional(it->second);
  }

  // The constant's value, its default where none is given.
  std::optional<double> value_of(const Operand& constant) const {
    auto it = binding_.constants.find(constant.name);
    if (it != binding_.constants.end()) return it->second;
    if (constant.fallback == no_node) return std::nullopt;
    return as_number(in_, constant.fallback);
  }

  Status names_are_known() const {
    using Kinds = std::initializer_list<Kind>;
    auto check = [&](const std::string& name, const char* what, Kinds kinds) -> Status {
      if (std::find(kinds.begin(), kinds.end(), kind_of(name)) != kinds.end()) return Done{};
      Suggestion suggestion(name);
      auto consider = [&](const std::string& candidate) {
        if (std::find(kinds.begin(), kinds.end(), kind_of(candidate)) != kinds.end()) suggestion.consider(candidate);
      };
      for (const Operand& operand : in_.operands) consider(operand.name);
      for (const Output& result : in_.results) consider(result.name);
      return invalid(in_.name + " has no " + what + " " + quoted(name) + suggestion.text());
    };
    const Kinds in_memory = {Kind::Operand, Kind::Result};
    for (const auto& [name, type] : binding_.types) TRIREME_CHECK(check(name, "operand or result", in_memory));
    for (const auto& [name, value] : binding_.constants) TRIREME_CHECK(check(name, "constant", {Kind::Constant}));
    for (const std::string& name : binding_.absent) TRIREME_CHECK(check(name, "operand", {Kind::Operand}));
    if (binding_.wanted)
      for (const std::string& name : *binding_.wanted) TRIREME_CHECK(check(name, "result", {Kind::Result}));
    for (const std::string& name : binding_.accumulate) {
      TRIREME_CHECK(check(name, "result", {Kind::Result}));
      const Output& result = in_.results[*names_.result(name)];
      if (!is_wanted(result))
        return invalid(in_.name + ": " + quoted(name) + " is to be accumulated, and is not stored");
      if (!sums_over_rows(in_, result))
        return invalid(in_.name + ": " + quoted(name) +
                       " cannot be accumulated: it is no sum over rows, and each run writes it anew");
    }
    if (binding_.row_block < 0) return invalid(in_.name + ": row_block is a number of rows, or 0 for the contract's");
    auto is_sum = [&](const Output& result) { return is_wanted(result) && sums_over_rows(in_, result); };
    if (binding_.row_block && std::none_of(in_.results.begin(), in_.results.end(), is_sum))
      return invalid(in_.name + ": row_block is said, and no result that is stored sums over rows");
    return Done{};
  }

  enum class Kind : std::uint8_t { None, Constant, Operand, Result };
  Kind kind_of(std::string_view name) const {
    if (std::optional<std::size_t> k = names_.operand(name))
      return in_.operands[*k].constant ? Kind::Constant : Kind::Operand;
    return names_.result(name) ? Kind::Result : Kind::None;
  }

  // ---- the signature ----

  void choose_results() {
    out_.name = in_.name;
    for (const Output& result : in_.results)
      if (is_wanted(result)) {
        out_.results.push_back(result);
        out_.results.back().accumulate = binding_.accumulate.contains(result.name);
        if (sums_over_rows(in_, result)) out_.results.back().row_block = binding_.row_block;
      }
  }

  template <typename Visit>
  void each_divisor(const Spread& spread, Visit&& visit) const {
    for (NodeId id : nodes_of(spread))
      if (id != no_node) visit(id);
  }

  // Constants that divisors, rotations, groups and places of random numbers use become numbers.
  void find_index_constants() {
    std::vector<bool> in_index(in_.size());
    auto mark = [&](NodeId id) { in_index[id] = true; };
    for (const Operand& operand : in_.operands) each_divisor(operand.spread, mark);
    for (const Output& result : in_.results) each_divisor(result.spread, mark);
    for (NodeId id = 0; id < in_.size(); ++id)
      if (in_[id].op == Op::Rotate || in_[id].op == Op::Group || in_[id].op == Op::Random)
        for (int k = 1; k < in_[id].arity; ++k) mark(in_[id].args[k]);
    index_constant_.resize(in_.operands.size());
    for (NodeId id = static_cast<NodeId>(in_.size()); id-- > 0;) {
      if (!in_index[id]) continue;
      for (NodeId arg : in_[id]) mark(arg);
      if (in_[id].op == Op::Constant) index_constant_[in_[id].payload] = true;
    }
  }

  // Walks from the wanted results down, through the defaults of absent operands.
  Status find_needed_operands() {
    std::vector<bool> seen(in_.size());
    std::vector<NodeId> open;
    auto push = [&](NodeId id) {
      if (!seen[id]) seen[id] = true, open.push_back(id);
    };
    for (const Output& result : out_.results) push(result.value), each_divisor(result.spread, push);
    for (const Operand& operand : in_.operands)
      if (!operand.constant && type_of(operand.name)) each_divisor(operand.spread, push);
    needed_.resize(in_.operands.size());
    while (!open.empty()) {
      NodeId id = open.back();
      open.pop_back();
      for (NodeId arg : in_[id]) push(arg);
      if (in_[id].op != Op::Operand && in_[id].op != Op::Constant) continue;
      const Operand& operand = in_.operands[in_[id].payload];
      needed_[in_[id].payload] = true;
      if (operand.constant) {
        if (!value_of(operand)) return invalid(in_.name + ": the constant " + quoted(operand.name) + " needs a value");
      } else if (!is_absent(operand)) {
        if (!type_of(operand.name))
          return invalid(in_.name + ": the operand " + quoted(operand.name) + " has no type" +
                         (operand.fallback == no_node ? "" : "; give one, or list it as absent to use its default"));
        each_divisor(operand.spread, push);
      } else if (operand.fallback == no_node) {
        return invalid(in_.name + ": the operand " + quoted(operand.name) + " is absent and has no default; give it" +
                       defaults_listed());
      } else {
        push(operand.fallback);
      }
    }
    return Done{};
  }

  std::string defaults_listed() const {
    std::string list;
    for (const Operand& operand : in_.operands)
      if (!operand.constant && operand.fallback != no_node) list += (list.empty() ? "" : ", ") + quoted(operand.name);
    return list.empty() ? "; none of its operands may be absent" : "; only " + list + " may be absent";
  }

  bool folds(std::size_t k) const {
    double value = *value_of(in_.operands[k]);
    return index_constant_[k] || value == 0 || value == 1 || value == -1;
  }

  // Operands that are present stay, used or not, so that arguments keep their places. Constants stay if they are used
  // and do not fold, with the program's default: their value is no part of what is compiled.
  Status make_signature() {
    place_.assign(in_.operands.size(), -1);
    bool wide = false;
    for (std::size_t k = 0; k < in_.operands.size(); ++k) {
      const Operand& operand = in_.operands[k];
      bool stays = operand.constant ? needed_[k] && !folds(k) : type_of(operand.name) && !is_absent(operand);
      if (!stays) continue;
      place_[k] = static_cast<std::int64_t>(out_.operands.size());
      out_.operands.push_back(operand);
      Operand& kept = out_.operands.back();
      if (operand.constant) continue;
      kept.type = type_of(operand.name);
      kept.fallback = no_node;
      wide = wide || kept.type == Type::F64;
    }
    for (Output& result : out_.results) {
      result.type = type_of(result.name);
      if (!result.type) return invalid(in_.name + ": the result " + quoted(result.name) + " has no type");
      wide = wide || result.type == Type::F64;
    }
    out_.compute = wide ? Type::F64 : Type::F32;
    return Done{};
  }

  // ---- the graph ----

  // What stands for a node besides its arguments: an absent operand's default.
  NodeId stand_in(const Node& node) const {
    if (node.op != Op::Operand || place_[node.payload] >= 0) return no_node;
    return in_.operands[node.payload].fallback;
  }

  Result<NodeId> move(NodeId root) {
    std::vector<NodeId> open = {root};
    while (!open.empty()) {
      NodeId id = open.back();
      const Node& node = in_[id];
      if (moved_[id] != no_node) {
        open.pop_back();
        continue;
      }
      if (open.size() > 4 * in_.size())  // each node opens its at most three arguments once, unless there is a ring
        return Error{Code::InvalidProgram, in_.name + ": an operand's default depends on the operand itself"};
      bool ready = true;
      auto need = [&](NodeId arg) {
        if (moved_[arg] == no_node) ready = false, open.push_back(arg);
      };
      NodeId instead = stand_in(node);
      if (instead != no_node) need(instead);
      for (int k = node.arity; k-- > 0;) need(node.args[k]);
      if (!ready) continue;
      open.pop_back();
      if (instead != no_node) {
        moved_[id] = moved_[instead];
        continue;
      }
      TRIREME_TRY(made, rebuild(node));
      moved_[id] = made;
    }
    return moved_[root];
  }

  // A backward that recomputes a saved result rounds it as the forward did: its gradient has the result's type.
  std::optional<Type> cast_type(const std::string& name) const {
    std::optional<Type> type = type_of(name);
    return type || !names_.operand(name) ? type : type_of("d" + name);
  }

  // To one of the type's two values around it: |value| is counted in steps, powers of two, so that all of this is exact
  // but the last rounding, which saturates. `random` below what is left of a step goes on to the next.
  NodeId rounded_by_chance(NodeId value, NodeId random, Type type) {
    const Formula x{&out_, value}, r{&out_, random};
    const FloatFormat& format = facts(type).format;
    if (format.exponent_bits && format.mantissa_bits >= facts(*out_.compute).format.mantissa_bits) return value;
    Formula step = x.number(1);
    if (format.exponent_bits) {
      const Formula least = x.number(std::ldexp(1.0, format.smallest_exponent()));
      step = max(call("exponent_floor", {x}), least) * x.number(std::ldexp(1.0, -format.mantissa_bits));
    }
    const Formula steps = abs(x) / step, whole = floor(steps);
    const Formula up = select(r < steps - whole, x.number(1), x.number(0));
    const Formula size = (whole + up) * step;
    const Formula rounded = select(x < x.number(0), -size, size);
    const Formula finite = select(abs(x) < x.number(std::numeric_limits<double>::infinity()), rounded, x);
    return out_.add(Op::RoundTo, {finite.id}, static_cast<std::int64_t>(type));
  }

  bool is_zero(NodeId id) const { return as_number(out_, id) == 0.0; }

  // A sum or difference with a zero that is known now is its other argument, also where that is -0: an absent gradient
  // and an offset of 0 cost nothing. Of two zeros it is the zero that they make. 0 - x stays. A bound program's sums
  // with zero are those that were not known to be when it was bound, and stay.
  NodeId sum_with_zeros(const Node& node, NodeId a, NodeId b) {
    if (in_.compute) return out_.add(node.op, {a, b});
    if (is_zero(a) && is_zero(b)) {
      const double x = out_[a].number(), y = out_[b].number();
      return out_.number(node.op == Op::Add ? x + y : x - y);
    }
    if (is_zero(b)) return a;
    if (node.op == Op::Add && is_zero(a)) return b;
    return out_.add(node.op, {a, b});
  }

  Result<NodeId> rebuild(const Node& node) {
    std::array<NodeId, 3> args = node.args;
    for (int k = 0; k < node.arity; ++k) args[k] = moved_[node.args[k]];
    std::span<const NodeId> moved(args.data(), node.arity);
    switch (node.op) {
      case Op::Constant:
        if (place_[node.payload] < 0) return out_.number(*value_of(in_.operands[node.payload]));
        return out_.add(Op::Constant, {}, place_[node.payload]);
      case Op::Operand: return out_.add(Op::Operand, {}, place_[node.payload]);
      case Op::StopGradient: return args[0];
      case Op::Add:
      case Op::Sub: return sum_with_zeros(node, args[0], args[1]);
      case Op::Rotate: {
        Result<NodeId> by = rotation(args[1]);
        if (!by) return invalid(in_.name + ": " + by.error().message);
        return out_.add(Op::Rotate, {args[0], *by});
      }
      case Op::Random: {
        Result<NodeId> made = placed(node, args);
        if (!made) return invalid(in_.name + ": " + made.error().message);
        return *made;
      }
      case Op::Group: {
        NodeId by = args[1];
        TRIREME_CHECK(fold_divisor("j" + std::string(group_of(node).wraps ? " % " : " / ") + "...", by));
        return out_.add(Op::Group, {args[0], by}, node.payload);
      }
      case Op::Cast: {
        // What is not stored has no storage type to round to.
        std::optional<Type> type = cast_type(in_.symbols[node.payload]);
        return type ? out_.add(Op::RoundTo, moved, static_cast<std::int64_t>(*type)) : args[0];
      }
      case Op::CastStochastic: {
        std::optional<Type> type = cast_type(in_.symbols[node.payload]);
        return type ? rounded_by_chance(args[0], args[1], *type) : args[0];
      }
      case Op::Largest: {
        const std::string& name = in_.symbols[node.payload];
        std::optional<Type> type = cast_type(name);
        if (auto absent = binding_.types_of_absent.find(name); !type && absent != binding_.types_of_absent.end())
          type = absent->second;
        if (!type)
          return invalid(in_.name + ": largest(" + name + ") needs a type for " + quoted(name) +
                         ", which no array says: " + name + "=none:f8e4m3 in a problem line, types elsewhere");
        return out_.number(facts(*type).largest);
      }
      default: return out_.add(node.op, moved, node.payload);
    }
  }

  Status build() {
    moved_.assign(in_.size(), no_node);
    auto follow = [&](NodeId& id) -> Status {
      if (id == no_node) return Done{};
      TRIREME_TRY(moved, move(id));
      id = moved;
      return Done{};
    };
    auto follow_spread = [&](const std::string& name, Spread& spread) -> Status {
      TRIREME_CHECK(follow(spread.row.pick));
      for (Axis* axis : {&spread.row, &spread.column})
        for (NodeId* divisor : {&axis->divide, &axis->wrap}) {
          TRIREME_CHECK(follow(*divisor));
          TRIREME_CHECK(fold_divisor(name, *divisor));
        }
      return Done{};
    };
    for (Operand& operand : out_.operands) {
      TRIREME_CHECK(follow_spread(operand.name, operand.spread));
      TRIREME_CHECK(follow(operand.fallback));
    }
    for (Output& result : out_.results) {
      TRIREME_CHECK(follow_spread(result.name, result.spread));
      TRIREME_CHECK(follow(result.value));
    }
    TRIREME_CHECK(seeds_are_integers());
    for (const Operand& operand : out_.operands) TRIREME_CHECK(picker_is_integer(operand.name, operand.spread));
    for (const Output& result : out_.results) TRIREME_CHECK(picker_is_integer(result.name, result.spread));
    auto give_name = [&](NodeId id, const std::string& name) {
      if (id != no_node && out_[id].arity > 0) out_.give_name(id, name);
    };
    for (const auto& [id, name] : in_.names()) give_name(moved_[id], name);
    for (const Output& result : in_.results)
      if (!is_wanted(result)) give_name(moved_[result.value], result.name);
    for (std::size_t k = 0; k < in_.operands.size(); ++k)  // a recomputed value keeps its operand's name
      if (place_[k] < 0 && in_.operands[k].fallback != no_node)
        give_name(moved_[in_.operands[k].fallback], in_.operands[k].name);
    return Done{};
  }

  Status seeds_are_integers() const {
    for (NodeId id = 0; id < out_.size(); ++id) {
      if (out_[id].op != Op::Random) continue;
      if (out_[out_[id].args[0]].op != Op::Operand)
        return invalid(in_.name + ": a seed is an operand in memory, and has no default");
      const Operand& seed = out_.operands[out_[out_[id].args[0]].payload];
      if (seed.type != Type::I64)
        return invalid(in_.name + ": " + quoted(seed.name) + " is a seed, and is " +
                       std::string(trireme::name(*seed.type)) + "; it takes i64");
    }
    return Done{};
  }

  Status picker_is_integer(const std::string& name, const Spread& spread) const {
    if (!spread.row.picked()) return Done{};
    const Operand& by = out_.operands[out_[spread.row.pick].payload];
    if (by.type == Type::I32 || by.type == Type::I64) return Done{};
    return invalid(in_.name + ": " + quoted(by.name) + " picks rows of " + quoted(name) + ", and is " +
                   std::string(trireme::name(*by.type)) + "; it takes i32 or i64");
  }

  // ---- index arithmetic, exact whatever the compute type: done here, as far as it is known ----

  Result<NodeId> folded(NodeId id, std::string_view what) {
    TRIREME_TRY(value, index_value(out_, id, {}, what));
    if (value) return out_.number(static_cast<double>(*value));
    Node node = out_[id];
    for (int k = 0; k < node.arity; ++k) {
      TRIREME_TRY(arg, folded(node.args[k], what));
      node.args[k] = arg;
    }
    return out_.add(node.op, std::span<const NodeId>(node.args.data(), node.arity), node.payload);
  }

  // With the plan's columns it is one of 0 .. n-1, and no target has arithmetic to do.
  Result<NodeId> rotation(NodeId by) {
    if (!binding_.columns) return folded(by, a_rotation);
    TRIREME_TRY(value, index_constant(out_, by, {binding_.columns}, a_rotation));
    return out_.number(static_cast<double>(turned(value, *binding_.columns)));
  }

  // Of the first row and column: none, and the seed alone is an argument.
  Result<NodeId> placed(const Node& random, std::array<NodeId, 3> args) {
    for (int k = 1; k < random.arity; ++k) {
      TRIREME_CHECK(check_first(out_, args[k], k == 1));
      TRIREME_TRY(first, index_constant(out_, args[k], {}, k == 1 ? a_first_row : a_first_column));
      args[k] = out_.number(static_cast<double>(first));
    }
    const bool counts_on = random.arity > 1 && !(is_zero(args[1]) && is_zero(args[2]));
    const std::span<const NodeId> taken(args.data(), counts_on ? 3 : 1);
    return out_.add(Op::Random, taken, random.payload);
  }

  // n, whose value the plan knows, is left.
  Status fold_divisor(const std::string& name, NodeId& id) {
    if (id == no_node) return Done{};
    Result<NodeId> made = folded(id, a_divisor);
    Status good = made ? check_divisor(out_, *made) : Status(made.error());
    if (!good) return invalid(in_.name + ": '" + name + "': " + good.error().message);
    id = *made;
    return Done{};
  }

  const Program& in_;
  const Binding& binding_;
  const SignatureNames names_;
  Program out_;
  std::vector<bool> index_constant_, needed_;
  std::vector<std::int64_t> place_;  // of each operand in the new signature; -1: gone
  std::vector<NodeId> moved_;
};

}  // namespace

Result<Program> bind(const Program& program, const Binding& binding) { return Binder(program, binding).run(); }

}  // namespace trireme
