#include <cmath>
#include <limits>
#include <vector>

#include "ir/build.hpp"
#include "ir/groups.hpp"
#include "ir/integers.hpp"
#include "ir/primitives.hpp"
#include "ir/rewrite.hpp"
#include "passes/passes.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {
namespace {

constexpr int wildcards = 3;

// A rule is two expressions over the wildcards x, y and c (a condition), written as a program writes them.
struct Rule {
  NodeId from, to;
};

// Every rule is exact for all values: NaN, infinities and the sign of a zero included. So there is no x + 0, no x * 0,
// no x - x, no x / x, no -(x - y), no not(a < b), and nothing reassociates.
class Rules {
 public:
  Rules() {
    for (int k = 0; k < wildcards; ++k) patterns_.operands.push_back({.name = std::string(1, "xyc"[k])});
    const Formula x = wildcard(0), y = wildcard(1), c = wildcard(2);
    const double inf = std::numeric_limits<double>::infinity();

    rule(x * 1.0, x);
    rule(x * -1.0, -x);
    rule(x / 1.0, x);
    rule(x / -1.0, -x);

    rule(-(-x), x);
    rule(x + -y, x - y);
    rule(x - -y, x + y);
    rule(-x * -y, x * y);
    rule(-x / -y, x / y);

    rule(abs(abs(x)), abs(x));
    rule(abs(-x), abs(x));
    rule(floor(floor(x)), floor(x));
    rule(floor(round(x)), round(x));
    rule(round(floor(x)), floor(x));
    rule(round(round(x)), round(x));

    rule(min(x, x), x);
    rule(max(x, x), x);
    rule(min(x, inf), x);
    rule(max(x, -inf), x);

    rule(fma(x, 1.0, y), x + y);
    rule(fma(x.number(1), x, y), x + y);
    rule(fma(-x, -y, c), fma(x, y, c));

    rule(select(c, x, x), x);
    rule(select(negated(c), x, y), select(c, y, x));
    rule(negated(negated(c)), c);
    rule(c.with(Op::And, {c.id, c.id}), c);
    rule(c.with(Op::Or, {c.id, c.id}), c);

    rule(x.with(Op::Rotate, {x.id, x.number(0).id}), x);
  }

  const Program& patterns() const { return patterns_; }
  std::span<const Rule> of(Op op) const { return by_op_[static_cast<std::size_t>(op)]; }

 private:
  Formula wildcard(int k) { return {&patterns_, patterns_.add(Op::Operand, {}, k)}; }
  static Formula negated(Formula c) { return c.with(Op::Not, {c.id}); }
  void rule(Formula from, Formula to) {
    by_op_[static_cast<std::size_t>(patterns_[from.id].op)].push_back({from.id, to.id});
  }

  Program patterns_;
  std::array<std::vector<Rule>, op_facts.size()> by_op_;
};

const Rules& rules() {
  static const Rules table;
  return table;
}

using Matched = std::array<NodeId, wildcards>;

bool matches(NodeId pattern, const Program& program, NodeId id, Matched& matched) {
  const Node& wanted = rules().patterns()[pattern];
  const Node& node = program[id];
  if (wanted.op == Op::Operand) {
    NodeId& bound = matched[wanted.payload];
    if (bound == no_node) bound = id;
    return bound == id;
  }
  if (wanted.op != node.op) return false;
  if (wanted.op == Op::Number) return wanted.number() == node.number();  // either zero
  if (wanted.payload != node.payload) return false;
  auto in_order = [&](int first, int second) {
    Matched trial = matched;
    for (int k = 0; k < node.arity; ++k)
      if (!matches(wanted.args[k], program, node.args[k == 0 ? first : k == 1 ? second : k], trial)) return false;
    matched = trial;
    return true;
  };
  return in_order(0, 1) || (facts(node.op).commutative && in_order(1, 0));
}

class Simplifier {
 public:
  Simplifier(const Program& in, Program& out) : in_(in), out_(out) {}

  // The node, or what it simplifies to. Its arguments are simplified already, and so is everything a rule makes:
  // there is nothing left to repeat. Rules end because each leaves fewer nodes, or fewer negations.
  NodeId make(Op op, std::span<const NodeId> args, std::int64_t payload) {
    if (std::optional<NodeId> known = folded(op, args, payload)) return *known;
    if (std::optional<NodeId> known = by_value(op, args, payload)) return *known;
    NodeId id = out_.add(op, args, payload);
    for (const Rule& rule : rules().of(op)) {
      Matched matched = {no_node, no_node, no_node};
      if (!matches(rule.from, out_, id, matched)) continue;
      const NodeId made = instance(rule.to, matched);
      return compares_as(made, id) ? made : id;
    }
    return id;
  }

 private:
  NodeId instance(NodeId pattern, const Matched& matched) {
    const Node& node = rules().patterns()[pattern];
    if (node.op == Op::Operand) return matched[node.payload];
    std::array<NodeId, 3> args = node.args;
    for (int k = 0; k < node.arity; ++k) args[k] = instance(node.args[k], matched);
    return make(node.op, std::span<const NodeId>(args.data(), node.arity), node.payload);
  }

  // Whether one may stand for the other in a comparison, which looks at what its sides are: j * 1 is a number of the
  // compute type, j an integer. Whole numbers whose neighbours the compute type holds too compare alike as both.
  bool is_more_exact_in_comparisons(NodeId id) const {
    if (!is_integer_leaf(out_, id)) return false;
    const double whole = out_.compute == Type::F64 ? 0x1p53 : 0x1p24;
    return out_[id].op != Op::Number || std::fabs(out_[id].number()) >= whole;
  }
  bool compares_as(NodeId made, NodeId id) const {
    return is_integer_leaf(out_, id) || !is_more_exact_in_comparisons(made);
  }

  // ---- folding, in the compute type, each operation rounding once ----

  std::optional<NodeId> folded(Op op, std::span<const NodeId> args, std::int64_t payload) {
    bool foldable = (op >= Op::Add && op <= Op::RoundTo) && !is_condition(op) && op != Op::Select;
    if (!foldable || !out_.compute) return std::nullopt;
    for (NodeId arg : args)
      if (out_[arg].op != Op::Number) return std::nullopt;
    Node node{op};
    node.payload = payload;
    std::optional<double> value =
        *out_.compute == Type::F64 ? value_of<double>(node, args) : value_of<float>(node, args);
    if (!value) return std::nullopt;
    const NodeId made = out_.number(*value);
    return is_more_exact_in_comparisons(made) ? std::nullopt : std::optional(made);
  }

  template <typename T>
  std::optional<double> value_of(const Node& node, std::span<const NodeId> args) const {
    ContractArithmetic arithmetic;
    std::array<T, 3> values = {};
    bool bits = node.op >= Op::BitsAdd && node.op <= Op::BitsShiftRight;
    for (std::size_t k = 0; k < args.size(); ++k) {
      values[k] = static_cast<T>(out_[args[k]].number());
      if (bits && std::isnan(values[k])) return std::nullopt;  // which NaN is not known
    }
    T value = apply_primitive<T>(node, values[0], values[1], values[2]);
    if (bits && std::isnan(value)) return std::nullopt;
    return value;
  }

  bool is_place(NodeId id) const {
    const Op op = out_[id].op == Op::Rotate ? out_[out_[id].args[0]].op : out_[id].op;
    return op == Op::RowIndex || op == Op::ColumnIndex;
  }

  // Of a row or a column and a number that no row or column is below.
  std::optional<bool> known_of_place(const Node& node) const {
    for (int k : {0, 1}) {
      const std::optional<double> number = as_number(out_, node.args[1 - k]);
      if (!is_place(node.args[k]) || !number || !(*number <= 0)) continue;
      const bool zero = *number == 0, on_the_left = k == 0;
      // place < 0, place <= -1 and place == -1 never; -1 < place and 0 <= place always.
      const bool decided = node.op == Op::Less        ? on_the_left || !zero
                           : node.op == Op::LessEqual ? !on_the_left || !zero
                                                      : !zero;
      if (decided) return node.op != Op::Equal && !on_the_left;
    }
    return std::nullopt;
  }

  // Whether a condition is known: a comparison of numbers, or its negation.
  std::optional<bool> known(NodeId id) const {
    const Node& node = out_[id];
    if (node.op == Op::Not) {
      std::optional<bool> inner = known(node.args[0]);
      return inner ? std::optional(!*inner) : std::nullopt;
    }
    if (node.op != Op::Less && node.op != Op::LessEqual && node.op != Op::Equal) return std::nullopt;
    if (std::optional<bool> answer = known_of_place(node)) return answer;
    std::optional<double> a = as_number(out_, node.args[0]), b = as_number(out_, node.args[1]);
    if (!a || !b || !out_.compute) return std::nullopt;
    if (*out_.compute == Type::F32 && !compares_integers(out_, node)) {
      ContractArithmetic arithmetic;
      a = static_cast<float>(*a), b = static_cast<float>(*b);
    }
    return apply_primitive<double>(node, *a, *b, 0) != 0;
  }

  // ---- rules that ask for more than the shape of their arguments ----

  std::optional<NodeId> by_value(Op op, std::span<const NodeId> args, std::int64_t payload) {
    auto unless_integer = [&](NodeId id) {
      return is_more_exact_in_comparisons(id) ? std::nullopt : std::optional(id);
    };
    switch (op) {
      case Op::Div:  // x / 2^k = x * 2^-k; one value a kernel gains nothing, and n / 2 may stand in an index
        if (!out_[args[0]].by_row && !out_[args[0]].by_column) break;
        if (std::optional<double> inverse = exact_inverse(args[1])) {
          NodeId factors[] = {args[0], out_.number(*inverse)};
          return make(Op::Mul, factors, 0);
        }
        break;
      case Op::Select:  // of a known condition
        if (std::optional<bool> condition = known(args[0])) return unless_integer(args[*condition ? 1 : 2]);
        break;
      case Op::And:  // true and c = c; false and c = false
        for (int k : {0, 1})
          if (std::optional<bool> condition = known(args[k])) return args[*condition ? 1 - k : k];
        break;
      case Op::Or:
        for (int k : {0, 1})
          if (std::optional<bool> condition = known(args[k])) return args[*condition ? k : 1 - k];
        break;
      case Op::RoundTo:
        if (holds(args[0], static_cast<Type>(payload))) return unless_integer(args[0]);
        break;
      case Op::Amax:
      case Op::Amin:  // of one value a row
        if (!out_[args[0]].by_column) return unless_integer(args[0]);
        break;
      case Op::Rotate:  // likewise; of an integer it is one, too
        if (!out_[args[0]].by_column) return args[0];
        break;
      case Op::Group:  // largest and smallest of one value a row
        if (!out_[args[0]].by_column && group_of(payload).op != Op::Sum && group_of(payload).op != Op::Mean)
          return unless_integer(args[0]);
        break;
      default: break;
    }
    return std::nullopt;
  }

  // 1/c, where that is a power of two and a normal number of the compute type.
  std::optional<double> exact_inverse(NodeId id) const {
    std::optional<double> c = as_number(out_, id);
    if (!c || !out_.compute || !std::isfinite(*c) || *c == 0) return std::nullopt;
    int exponent;
    if (std::fabs(std::frexp(*c, &exponent)) != 0.5) return std::nullopt;
    int power = exponent - 1, limit = *out_.compute == Type::F64 ? 1022 : 126;
    if (power > limit || power < -limit) return std::nullopt;
    return std::ldexp(*c < 0 ? -1.0 : 1.0, -power);
  }

  // Whether rounding the value to the type changes nothing.
  bool holds(NodeId id, Type type) const {
    const Node& node = out_[id];
    if (out_.compute && (type == *out_.compute || type == Type::F64)) return true;
    if (node.op == Op::RoundTo) return node.payload == static_cast<std::int64_t>(type);
    if (node.op != Op::Operand || out_.operands[node.payload].type != type) return false;
    if (type == Type::F8E8M0 && in_.operands[node.payload].spread.row.picked()) return false;  // 0 outside the table
    return type != Type::I32 && type != Type::I64;
  }

  const Program& in_;
  Program& out_;
};

}  // namespace

Program simplify(const Program& program) {
  return rewrite(program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    return Simplifier(program, out).make(node.op, args, node.payload);
  });
}

}  // namespace trireme
