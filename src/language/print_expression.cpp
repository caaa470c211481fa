#include "language/print_expression.hpp"

#include <charconv>
#include <cmath>

#include "math/functions.hpp"
#include "math/reductions.hpp"

namespace trireme {
namespace {

// `part` as it stands inside something that binds as strongly as `needed`.
void put(Phrase& out, const Phrase& part, Precedence needed) {
  bool parentheses = part.precedence < needed;
  out.text += parentheses ? "(" + part.text + ")" : part.text;
  out.nesting = std::max(out.nesting, part.nesting + parentheses);
}

Phrase infix(std::string_view sign, Precedence precedence, Precedence left, Precedence right,
             std::span<const Phrase> args) {
  Phrase out{.precedence = precedence};
  put(out, args[0], left);
  out.equals_at = out.text.size() + 1;
  out.text.append(" ").append(sign).append(" ");
  put(out, args[1], right);
  return out;
}

Phrase called(std::string_view name, std::span<const Phrase> args, std::string_view last = {}) {
  Phrase out{.text = std::string(name) + "("};
  for (const Phrase& arg : args) {
    if (&arg != args.data()) out.text += ", ";
    out.text += arg.text;
    out.nesting = std::max(out.nesting, arg.nesting);
  }
  if (!last.empty()) out.text.append(args.empty() ? "" : ", ").append(last);
  out.text += ")";
  ++out.nesting;
  return out;
}

Phrase negative(const Program& program, const Node& node, const Phrase& arg) {
  // Before a number the parser takes `-` for its sign, so a negated one stands in parentheses.
  bool number = program[node.args[0]].op == Op::Number;
  Phrase out{.text = "-", .precedence = Precedence::Unary};
  put(out, number ? Phrase{.text = arg.text, .precedence = Precedence::Comparison} : arg, Precedence::Primary);
  ++out.nesting;
  return out;
}

Phrase negation(const Program& program, const Node& node, const Phrase& arg) {
  // A condition that has a name of its own came here as that name, which binds as a whole.
  if (program[node.args[0]].op != Op::Equal || arg.precedence != Precedence::Comparison)
    return called("not", {&arg, 1});
  Phrase out = arg;
  out.text[out.equals_at] = '!';
  return out;
}

// Whole-number arithmetic, written out.
Phrase arithmetic(const Program& program, NodeId id) {
  const Node& node = program[id];
  if (node.op == Op::Number)
    return {.text = number_text(node.number()),
            .precedence = std::signbit(node.number()) ? Precedence::Unary : Precedence::Primary};
  if (node.op == Op::ColumnCount) return {.text = "n"};
  if (node.op == Op::Constant) return {.text = program.operands[node.payload].name};
  const Phrase first = arithmetic(program, node.args[0]);
  if (node.op == Op::Neg) return negative(program, node, first);
  const Phrase args[] = {first, arithmetic(program, node.args[1])};
  const std::string_view sign = facts(node.op).name;
  return node.op == Op::Add || node.op == Op::Sub
             ? infix(sign, Precedence::Sum, Precedence::Sum, Precedence::Product, args)
             : infix(sign, Precedence::Product, Precedence::Product, Precedence::Unary, args);
}

std::string divisor_text(const Program& program, NodeId id) {
  const std::string text = arithmetic(program, id).text;
  return program[id].arity == 0 ? text : "(" + text + ")";
}

std::string index_text(const Program& program, const Axis& axis, std::string_view letter) {
  if (axis.picked()) return program.operands[program[axis.pick].payload].name;
  std::string text(letter);
  if (axis.divide != no_node) text += " / " + divisor_text(program, axis.divide);
  if (axis.wrap == no_node) return text;
  if (axis.divide != no_node) text = "(" + text + ")";
  return text + " % " + divisor_text(program, axis.wrap);
}

// `sum(e, j / g)`, `sum(entries(e))`, and `sum(entries(e, j / g))` where e itself does not say which entries.
Phrase group(const Program& program, const Node& node, const Phrase& value, ColumnSpreads& spreads) {
  const GroupReduction kind = group_of(node);
  const Axis axis{
      .present = true, .divide = kind.wraps ? no_node : node.args[1], .wrap = kind.wraps ? node.args[1] : no_node};
  const std::string_view name = facts(kind.op).name;
  const std::string index = index_text(program, axis, "j");
  if (!kind.entries) return called(name, {&value, 1}, index);
  const bool says_so = spreads[node.args[0]] == spread_of(axis);
  const Phrase entries = called("entries", {&value, 1}, says_so ? std::string_view() : index);
  return called(name, {&entries, 1});
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  // to_chars writes 1e-06 and 1e+20; we write 1e-6 and 1e20.
  if (std::size_t e = text.find('e'); e != std::string::npos) {
    if (text[e + 1] == '+') text.erase(e + 1, 1);
    std::size_t digits = text[e + 1] == '-' ? e + 2 : e + 1;
    while (text[digits] == '0') text.erase(digits, 1);
  }
  return text;
}

std::string spread_text(const Program& program, const Spread& spread) {
  std::string text = "[";
  if (spread.row.present) text += index_text(program, spread.row, "i");
  if (spread.row.present && spread.column.present) text += spread.plain() ? "," : ", ";
  if (spread.column.present) text += index_text(program, spread.column, "j");
  return text + "]";
}

Phrase phrase(const Program& program, NodeId id, std::span<const Phrase> args, ColumnSpreads& spreads) {
  const Node& node = program[id];
  std::string_view name = facts(node.op).name;
  switch (node.op) {
    case Op::Number: {
      std::string text = number_text(node.number());
      Precedence precedence = text[0] == '-' ? Precedence::Unary : Precedence::Primary;
      return {.text = std::move(text), .precedence = precedence};
    }
    case Op::Constant:
    case Op::Operand: return {.text = program.operands[node.payload].name};
    case Op::RowIndex:
    case Op::ColumnIndex:
    case Op::ColumnCount: return {.text = std::string(name)};
    case Op::Add:
    case Op::Sub: return infix(name, Precedence::Sum, Precedence::Sum, Precedence::Product, args);
    case Op::Mul:
    case Op::Div: return infix(name, Precedence::Product, Precedence::Product, Precedence::Unary, args);
    case Op::Neg: return negative(program, node, args[0]);
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal: return infix(name, Precedence::Comparison, Precedence::Sum, Precedence::Sum, args);
    case Op::Not: return negation(program, node, args[0]);
    case Op::Call: return called(functions()[node.payload].name, args);
    case Op::Reduce:
    case Op::ReduceSpread: return called(reductions()[node.payload].name, args);
    case Op::Fold: return called(name_of_total(node.payload), args);
    case Op::Cast:
    case Op::Largest: return called(name, args, program.symbols[node.payload]);
    case Op::CastStochastic: {
      const Phrase words[] = {args[0], {.text = program.symbols[node.payload]}, args[1]};
      return called(name, words);
    }
    case Op::Random: {
      Phrase words[] = {args[0], {.text = std::to_string(node.payload)}, {}, {}};
      std::copy(args.begin() + 1, args.end(), words + 2);
      return called(name, std::span<const Phrase>(words, args.size() + 1));
    }
    case Op::BitsShiftLeft:
    case Op::BitsShiftRight: return called(name, args, std::to_string(node.payload));
    case Op::RoundTo: return called(name, args, trireme::name(static_cast<Type>(node.payload)));
    case Op::Group: return group(program, node, args[0], spreads);
    case Op::Abs:
    case Op::Sqrt:
    case Op::Fma:
    case Op::Min:
    case Op::Max:
    case Op::Floor:
    case Op::Round:
    case Op::And:
    case Op::Or:
    case Op::Select:
    case Op::BitsAdd:
    case Op::BitsAnd:
    case Op::BitsOr:
    case Op::Sum:
    case Op::Amax:
    case Op::Amin:
    case Op::PickColumn:
    case Op::ColumnSum:
    case Op::ColumnMax:
    case Op::Mean:
    case Op::Rotate:
    case Op::StopGradient: return called(name, args);
  }
  return {};
}

}  // namespace trireme
