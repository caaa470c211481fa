// The signature of a program: operands, results, how they are spread, and the types of a bound program.
#include <cmath>

#include "ir/index_arithmetic.hpp"
#include "ir/verify.hpp"
#include "language/diagnostic.hpp"
#include "language/parser.hpp"
#include "support/type_names.hpp"

namespace trireme {

void Parser::signature() {
  if (auto name = expect_name("the program's name")) {
    // Functions' names are free here, as programs are not called: gelu.row defines gelu with gelu.
    if (is_word(name->text)) return fail(name->offset, "'" + std::string(name->text) + "' is reserved");
    check_length(*name);
    program_.name = name->text;
  }
  std::size_t opened = token_.offset;
  if (!expect("(", "and the operands")) return;
  declare_ahead();
  if (!token_.is(")")) {
    do operand();
    while (accept(","));
  }
  if (!expect_close(")", opened) || !expect("->", "and the results")) return;
  opened = token_.offset;
  if (!expect("(", "and the results")) return;
  do result();
  while (accept(","));
  if (expect_close(")", opened)) binding();
  if (!failed() && !at_line_end()) fail_here("the end of the line");
}

// Reads the signature once without checking it. What is wrong with it is found when it is parsed.
void Parser::declare_ahead() {
  Lexer ahead = lexer_;
  Token token = token_;
  std::size_t open = 1, index = 0;
  bool results = false, begins = true;
  for (; token.kind != TokenKind::End && token.kind != TokenKind::NewLine; token = ahead.next()) {
    if (begins && open == 1 && token.kind == TokenKind::Name) {
      Lexer further = ahead;
      if (results || further.next().is("[")) symbols_ahead_.emplace(token.text, -1);
      else constants_ahead_.emplace(token.text, index);
    }
    begins = token.is("(") || token.is(",");
    if (token.is(",") && open == 1) ++index;
    if (token.is("(") || token.is("[")) ++open;
    if ((token.is(")") || token.is("]")) && open > 0 && --open == 0) {
      if (results) break;
      results = true;
    }
  }
  if (ahead.next().text == "in") program_.compute = type_named(ahead.next().text);
}

void Parser::operand() {
  auto name = expect_name("an operand");
  if (!name) return;
  std::size_t index = program_.operands.size();
  program_.operands.push_back({.name = std::string(name->text), .constant = !token_.is("[")});
  bool constant = program_.operands[index].constant;
  if (!constant) {
    program_.operands[index].spread = spread();
    program_.operands[index].type = type_after_colon(*name);
  }
  Name meaning{constant ? NameKind::Constant : NameKind::Operand, index, name->offset};
  if (accept("=")) meaning.wants_default = !default_of(index);
  define(*name, meaning);
}

// False if the default is left to a line.
bool Parser::default_of(std::size_t index) {
  std::size_t offset = token_.offset;
  NodeId value = no_node;
  if (program_.operands[index].constant) {
    if (auto number = number_literal()) value = program_.number(*number);
    else fail_here("a number, the only default a constant has");
  } else if (accept("...")) {
    return false;
  } else {
    value = this->value(expression(), offset);
    check_fits(value, program_.operands[index].spread, program_.operands[index].name, offset);
  }
  program_.operands[index].fallback = value;
  return true;
}

void Parser::result() {
  auto name = expect_name("a result");
  if (!name) return;
  if (!token_.is("[")) return fail_here("the spread of the result: [i,j], [i], [j] or []");
  const std::size_t spread_at = token_.offset;
  Output result{.name = std::string(name->text), .spread = spread()};
  if (result.spread.row.picked() && !failed()) {
    const Operand& by = program_.operands[program_[result.spread.row.pick].payload];
    if (!by.spread.row.present || !by.spread.row.plain())
      fail(spread_at, "rows of a result are picked by an operand with a value for each row, [i]: of '" + by.name +
                          "' several rows have one");
  }
  if (result.spread.row.picked() && result.spread.column.divided())
    fail(spread_at, "a result whose rows are picked has columns of its own: [" +
                        program_.operands[program_[result.spread.row.pick].payload].name + ", j]");
  result.type = type_after_colon(*name);
  define(*name, {NameKind::Result, program_.results.size(), name->offset});
  program_.results.push_back(std::move(result));
}

std::optional<Type> Parser::type_after_colon(const Token& name) {
  std::optional<Type> found;
  if (accept(":")) found = type();
  std::optional<std::size_t>& first = found ? typed_ : untyped_;
  if (!first) first = name.offset;
  return found;
}

std::optional<Type> Parser::type() {
  std::optional<Type> found = token_.kind == TokenKind::Name ? type_named(token_.text) : std::nullopt;
  if (!found) {
    fail_here("a type: " + type_names(", ", " or "));
    return std::nullopt;
  }
  advance();
  return found;
}

// What a bound program says after its signature; declare_ahead() has read it already.
void Parser::binding() {
  if (token_.kind == TokenKind::Name && token_.text == "in") {
    advance();
    if (program_.compute != Type::F32 && program_.compute != Type::F64) return fail_here("the compute type f32 or f64");
    advance();
    if (untyped_)
      fail(*untyped_, "every operand in memory and every result of a bound program has a type, as in x[i,j]: bf16");
  } else if (typed_) {
    fail(*typed_, "a program with types also says what it computes in: 'in f32' or 'in f64' after the results");
  }
}

Spread Parser::spread() {
  Spread spread;
  std::size_t opened = token_.offset;
  expect("[");
  if (accept("]")) return spread;
  bool row = token_.text == "i", grouped = token_.is("(");
  if (grouped) {
    Lexer ahead = lexer_;
    row = ahead.next().text == "i";
  }
  if (const Name* by = picker()) {
    spread.row = picked(*by);
    if (accept(",")) spread.column = index("j");
    expect_close("]", opened);
    return spread;
  }
  if (token_.kind == TokenKind::Name && token_.text != "i" && token_.text != "j" &&
      symbols_ahead_.contains(token_.text))
    fail(token_.offset, "an operand that picks rows stands before what it picks them of, and '" +
                            std::string(token_.text.substr(0, max_name_bytes)) + "' does not");
  if (row) spread.row = index("i");
  if (!row || accept(",")) spread.column = index(row ? "j" : "i or j");
  if (!row && token_.is(",")) fail(token_.offset, "the row's index stands first: [i,j]");
  expect_close("]", opened);
  return spread;
}

// The operand whose values say which rows of a table are meant, if its name is at hand.
const Parser::Name* Parser::picker() const {
  if (token_.kind != TokenKind::Name) return nullptr;
  auto found = names_.find(token_.text);
  return found != names_.end() && found->second.kind == NameKind::Operand ? &found->second : nullptr;
}

Axis Parser::picked(const Name& by) {
  const Operand& operand = program_.operands[by.index];
  const std::string name = "'" + operand.name + "'";
  if (operand.spread.column.present)
    fail(token_.offset, "rows are picked by an operand with one value a row, and " + name + " has several");
  else if (operand.spread.row.picked())
    fail(token_.offset, "the rows of " + name + " are picked themselves; an operand that picks rows has its own");
  else if (operand.fallback != no_node || by.wants_default)
    fail(token_.offset, name + " has a default; an operand that picks rows has none");
  advance();
  if (token_.is("/") || token_.is("%")) fail(token_.offset, "a picked row is not divided or wrapped");
  return {.present = true, .pick = add(Op::Operand, {}, static_cast<std::int64_t>(by.index))};
}

// `i`, `i / a`, `i % b`, `(i / a) % b`; the parentheses may enclose any beginning of it.
Axis Parser::index(std::string_view expected) {
  Axis axis{.present = true};
  std::size_t opened = token_.offset;
  bool open = accept("(");
  if (token_.kind != TokenKind::Name || token_.text != expected.substr(expected.size() - 1)) {
    fail_here("the index " + std::string(expected));
    return axis;
  }
  advance();
  while (!failed()) {
    std::size_t offset = token_.offset;
    if (accept("/")) {
      if (!axis.plain()) fail(offset, "an index is divided once, then wrapped: (i / a) % b");
      axis.divide = divisor();
    } else if (accept("%")) {
      if (axis.wrap != no_node) fail(offset, "an index is wrapped once");
      axis.wrap = divisor();
    } else if (open) {
      open = !expect_close(")", opened);
    } else {
      break;
    }
  }
  return axis;
}

NodeId Parser::divisor() {
  const Token token = token_;
  if (token.kind == TokenKind::Number) {
    if (token.number < 1 || token.number != std::floor(token.number))
      fail(token.offset, "an index is divided and wrapped by positive integers");
    advance();
    return program_.number(token.number);
  }
  if (!accept("(")) return divisor_leaf();
  in_divisor_ = true;
  const NodeId id = inside_divisor();
  in_divisor_ = false;
  expect_close(")", token.offset);
  if (failed()) return no_node;
  if (!is_constant_expression(program_, id)) fail(token.offset, "this divisor is too long");
  else if (const Status good = check_divisor(program_, id); !good) fail(token.offset, good.error().message);
  return id;
}

NodeId Parser::inside_divisor() {
  Deeper deeper(*this);
  return sum();
}

NodeId Parser::divisor_leaf() {
  const Token token = token_;
  if (token.kind != TokenKind::Name) {
    fail_here(in_divisor_ ? "a constant, a whole number or n"
                          : "a constant, a positive integer, n, or arithmetic of them in parentheses");
    return no_node;
  }
  advance();
  if (token.text == "n") return add(Op::ColumnCount, {});
  auto constant = constants_ahead_.find(token.text);
  if (constant != constants_ahead_.end()) return add(Op::Constant, {}, static_cast<std::int64_t>(constant->second));
  Suggestion suggestion(token.text);
  for (const auto& [name, index] : constants_ahead_) suggestion.consider(name);
  fail(token.offset, "'" + std::string(token.text.substr(0, max_name_bytes)) + "' is not a constant of this signature" +
                         suggestion.text());
  return no_node;
}

}  // namespace trireme
