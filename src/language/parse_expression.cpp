// Expressions: one function for each strength of binding, loosest first.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/index_arithmetic.hpp"
#include "ir/verify.hpp"
#include "language/diagnostic.hpp"
#include "language/parse.hpp"
#include "language/parser.hpp"

namespace trireme {

NodeId Parser::expression() {
  Deeper deeper(*this);
  std::size_t offset = token_.offset;
  NodeId left = sum();
  auto comparison = [&] {
    for (std::string_view each : {"<", "<=", ">", ">=", "==", "!="})
      if (token_.is(each)) return true;
    return false;
  };
  if (!comparison()) return left;
  Token sign = token_;
  advance();
  std::size_t right_offset = token_.offset;
  left = value(left, offset);
  NodeId right = value(sum(), right_offset);
  if (comparison()) fail(token_.offset, "comparisons do not chain; write and(a < b, b < c)");
  if (sign.text == "<") return add(Op::Less, {left, right});
  if (sign.text == "<=") return add(Op::LessEqual, {left, right});
  if (sign.text == ">") return add(Op::Less, {right, left});
  if (sign.text == ">=") return add(Op::LessEqual, {right, left});
  NodeId equal = add(Op::Equal, {left, right});
  return sign.text == "==" ? equal : add(Op::Not, {equal});
}

NodeId Parser::sum() {
  std::size_t offset = token_.offset;
  NodeId left = product();
  while (token_.is("+") || token_.is("-")) {
    Op op = token_.is("+") ? Op::Add : Op::Sub;
    advance();
    std::size_t right_offset = token_.offset;
    left = value(left, offset);
    NodeId right = value(product(), right_offset);
    left = add(op, {left, right});
  }
  return left;
}

NodeId Parser::product() {
  std::size_t offset = token_.offset;
  NodeId left = unary();
  while (token_.is("*") || token_.is("/")) {
    Op op = token_.is("*") ? Op::Mul : Op::Div;
    advance();
    std::size_t right_offset = token_.offset;
    left = value(left, offset);
    NodeId right = value(unary(), right_offset);
    left = add(op, {left, right});
  }
  if (token_.is("%"))
    fail(token_.offset, "'%' stands only in the index of an operand, a result or a group: sum(e, j % g)");
  return left;
}

NodeId Parser::unary() {
  if (!token_.is("-")) return primary();
  if (auto number = number_literal()) return add(Op::Number, {}, std::bit_cast<std::int64_t>(*number));
  Deeper deeper(*this);
  advance();
  std::size_t offset = token_.offset;
  return add(Op::Neg, {value(unary(), offset)});
}

// A number with its sign, or nothing consumed.
std::optional<double> Parser::number_literal() {
  Token token = token_;
  Lexer ahead = lexer_;
  bool negative = token.is("-");
  if (negative) token = ahead.next();
  double magnitude = token.number;
  if (token.kind == TokenKind::Name) {
    if (token.text != "inf" && token.text != "nan") return std::nullopt;
    magnitude =
        token.text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (token.kind != TokenKind::Number) {
    return std::nullopt;
  }
  if (negative) advance();
  advance();
  return negative && !std::isnan(magnitude) ? -magnitude : magnitude;
}

NodeId Parser::primary() {
  if (auto number = number_literal()) return add(Op::Number, {}, std::bit_cast<std::int64_t>(*number));
  std::size_t opened = token_.offset;
  if (in_divisor_ && !token_.is("(")) return divisor_leaf();
  if (token_.kind == TokenKind::Name) return name();
  if (!accept("(")) {
    fail_here("a value");
    return no_node;
  }
  NodeId inside = in_divisor_ ? inside_divisor() : expression();
  expect_close(")", opened);
  return inside;
}

NodeId Parser::name() {
  Token name = token_;
  advance();
  auto known = names_.find(name.text);
  if (known != names_.end()) {
    const Name& meaning = known->second;
    if (std::optional<Callable> callable = callable_named(name.text); callable && token_.is("("))
      return call(name, *callable);
    if (token_.is("(")) fail(name.offset, "'" + std::string(name.text) + "' is not a function");
    switch (meaning.kind) {
      case NameKind::Constant: return add(Op::Constant, {}, static_cast<std::int64_t>(meaning.index));
      case NameKind::Operand: return add(Op::Operand, {}, static_cast<std::int64_t>(meaning.index));
      case NameKind::Line: return meaning.value;
      case NameKind::Result:
        if (meaning.value == no_node)
          fail(name.offset, "the result '" + std::string(name.text) + "' is used before it is assigned");
        else if (is_column_reduction(program_[meaning.value].op))
          fail(name.offset, "'" + std::string(name.text) + "' is a " +
                                (program_[meaning.value].op == Op::ColumnSum ? "column sum" : "column maximum") +
                                ", known when all rows are done; no expression can use it");
        return meaning.value;
    }
  }
  if (name.text == "i") return add(Op::RowIndex, {});
  if (name.text == "j") return add(Op::ColumnIndex, {});
  if (name.text == "n") return add(Op::ColumnCount, {});
  auto ahead = constants_ahead_.find(name.text);  // perhaps called as a composed reduction is
  if (ahead != constants_ahead_.end() && !token_.is("("))
    return add(Op::Constant, {}, static_cast<std::int64_t>(ahead->second));
  if (auto callable = callable_named(name.text)) {
    if (callable->form != CallForm::WholeResult) return call(name, *callable);
    fail(name.offset, std::string(name.text) + " stands only as the whole right side of a result");
    return no_node;
  }
  return unknown(name, token_.is("("));
}

NodeId Parser::unknown(const Token& name, bool called) {
  if (called && name.text == "entries") {
    fail(name.offset, "entries(e) stands only as what sum, mean, amax or amin run over: sum(entries(e))");
    return no_node;
  }
  Suggestion suggestion(name.text);
  for (const auto& [known, meaning] : names_)
    if (!called) suggestion.consider(known);
  for (std::string_view known : callable_names()) suggestion.consider(known);
  std::string shown = "'" + std::string(name.text.substr(0, max_name_bytes)) + "'";
  if (symbols_ahead_.contains(name.text))
    fail(name.offset, "a default may only read operands that stand before it, not " + shown);
  else fail(name.offset, (called ? "unknown function " : "unknown name ") + shown + suggestion.text());
  return no_node;
}

NodeId Parser::call(const Token& name, const Callable& callable) {
  if (std::find(group_ops.begin(), group_ops.end(), callable.op) != group_ops.end()) return reduction(name, callable);
  std::size_t opened = token_.offset;
  std::string shown = "'" + std::string(name.text) + "'";
  if (!token_.is("(")) {
    fail(name.offset, shown + " is a function; its arguments in parentheses are missing");
    return no_node;
  }
  bool needs_binding = callable.form == CallForm::WithCount || callable.form == CallForm::WithType ||
                       callable.op == Op::PickColumn || callable.op == Op::BitsAdd || callable.op == Op::BitsAnd ||
                       callable.op == Op::BitsOr;
  if (needs_binding && !program_.compute)
    fail(name.offset, shown + " needs a compute type: it belongs to bound programs, with 'in f32' after the results");
  if (callable.form == CallForm::WithSymbol && program_.compute)
    fail(name.offset, shown + " does not belong to bound programs; their types are known");
  advance();

  bool extra = callable.form == CallForm::WithSymbol || callable.form == CallForm::WithCount ||
               callable.form == CallForm::WithType || callable.form == CallForm::WithStream;
  const bool may_have_place = callable.form == CallForm::WithStream;
  const int most = may_have_place ? 3 : callable.arity;
  int wanted = callable.arity + extra, found = 0;
  const int extra_at = callable.op == Op::CastStochastic ? 1 : callable.arity;
  NodeId args[3] = {no_node, no_node, no_node};
  std::int64_t payload = callable.payload;
  while (!failed() && !token_.is(")")) {
    if (found > 0 && !expect_separator(opened)) break;
    std::size_t offset = token_.offset;
    if (extra && found == extra_at) {
      payload = last_argument(callable);
    } else {
      NodeId arg = expression();
      if (failed()) break;
      if (const int k = found - (extra && found > extra_at); k < most) {
        bool condition = takes_condition(callable.op, k);
        if (!condition) value(arg, offset);
        if (condition && !is_condition(program_[arg].op))
          fail(offset, shown + " needs a condition here, such as a < b");
        if (may_have_place) k == 0 ? check_seed(arg, offset) : check_first(arg, k == 1, offset);
        if (callable.form == CallForm::WithConstant && k == callable.arity - 1) check_rotation(arg, offset);
        args[k] = arg;
      }
    }
    ++found;
  }
  const bool placed = may_have_place && found == most + extra;
  if (!failed() && found != wanted && !placed)
    fail(name.offset, shown + " takes " + std::to_string(wanted) + (wanted == 1 ? " argument" : " arguments") +
                          (may_have_place ? ", or 4 with a first row and column" : "") + ", found " +
                          std::to_string(found));
  expect_close(")", opened);
  return add(callable.op, std::span<const NodeId>(args, static_cast<std::size_t>(placed ? most : callable.arity)),
             payload);
}

void Parser::check_seed(NodeId seed, std::size_t offset) {
  if (failed()) return;
  const Node& node = program_[seed];
  if (node.op != Op::Operand || node.by_row || node.by_column)
    return fail(offset, "'random' needs an operand with one value here, seed[]");
  seeds_.try_emplace(seed, offset);
}

void Parser::check_first(NodeId first, bool is_row, std::size_t offset) {
  if (failed()) return;
  if (!is_constant_expression(program_, first) || counts_columns(program_, first))
    return fail(offset, "'random' needs short arithmetic of constants and numbers as its first " +
                            std::string(is_row ? "row" : "column"));
  if (const Status good = trireme::check_first(program_, first, is_row); !good) fail(offset, good.error().message);
}

// Once all is read: a seed is i64, and as a number of the compute type would be another.
void Parser::check_seeds() {
  auto refuse = [&](NodeId id) {
    if (auto found = seeds_.find(id); found != seeds_.end() && !failed())
      fail(found->second, "'" + program_.operands[program_[id].payload].name +
                              "' is a seed here and a number elsewhere; a seed is only a seed");
  };
  for (NodeId id = 0; id < program_.size() && !seeds_.empty(); ++id)
    if (program_[id].op != Op::Random)
      for (NodeId arg : program_[id]) refuse(arg);
  for (const Output& result : program_.results) refuse(result.value);
  for (const Operand& operand : program_.operands)
    if (operand.fallback != no_node) refuse(operand.fallback);
}

void Parser::check_rotation(NodeId by, std::size_t offset) {
  if (failed()) return;
  if (!is_constant_expression(program_, by))
    return fail(offset, "'rotate' needs short arithmetic of constants, numbers and n here");
  auto value = index_value(program_, by, {}, a_rotation);
  if (!value) fail(offset, value.error().message);
}

std::int64_t Parser::last_argument(const Callable& callable) {
  Token token = token_;
  if (callable.form == CallForm::WithType) return static_cast<std::int64_t>(type().value_or(Type::F32));
  if (callable.form == CallForm::WithCount) {
    double width = program_.compute == Type::F64 ? 64 : 32;
    if (token.kind != TokenKind::Number || !(token.number < width) ||
        token.number != static_cast<double>(static_cast<std::int64_t>(token.number))) {
      fail_here("how many bits to shift by, less than the compute type's width");
      return 0;
    }
    advance();
    return static_cast<std::int64_t>(token.number);
  }
  if (callable.form == CallForm::WithStream) {
    if (token.kind != TokenKind::Number || !(token.number < 0x1p32) || token.number != std::floor(token.number)) {
      fail_here("the number of a stream, whole and below 2^32: each use of randomness has its own");
      return 0;
    }
    advance();
    return static_cast<std::int64_t>(token.number);
  }
  auto known = token.kind == TokenKind::Name ? symbols_ahead_.find(token.text) : symbols_ahead_.end();
  if (known == symbols_ahead_.end()) {
    fail_here("an operand in memory or a result, for its type");
    return 0;
  }
  advance();
  if (known->second < 0) {
    known->second = static_cast<std::int64_t>(program_.symbols.size());
    program_.symbols.emplace_back(token.text);
  }
  return known->second;
}

NodeId Parser::value(NodeId id, std::size_t offset) {
  if (!failed() && is_condition(program_[id].op))
    fail(offset, "this is a condition, not a value; select(condition, 1, 0) makes one of it");
  return id;
}

NodeId Parser::add(Op op, std::initializer_list<NodeId> args, std::int64_t payload) {
  return add(op, std::span<const NodeId>(args.begin(), args.size()), payload);
}

NodeId Parser::add(Op op, std::span<const NodeId> args, std::int64_t payload) {
  if (failed()) return no_node;
  if (program_.size() >= max_nodes) {
    fail(token_.offset, "the program has more than " + std::to_string(max_nodes) + " nodes");
    return no_node;
  }
  return program_.add(op, args, payload);
}

}  // namespace trireme
