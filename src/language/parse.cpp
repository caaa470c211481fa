// The lines of a program. The signature: parse_signature.cpp; expressions: parse_expression.cpp; the grammar:
// parser.hpp.
#include "language/parse.hpp"

#include <cmath>

#include "ir/verify.hpp"
#include "language/diagnostic.hpp"
#include "language/parser.hpp"

namespace trireme {

Result<Program> parse(std::string_view text) {
  if (text.size() > max_text_bytes)
    return Error{Code::InvalidProgram, "1:1: the text has " + std::to_string(text.size()) + " bytes; at most " +
                                           std::to_string(max_text_bytes) + " are read"};
  return Parser(text).run();
}

Result<Program> parse_signature(std::string_view text) { return Parser(text).signature_alone(); }

Result<Program> Parser::signature_alone() {
  advance();
  signature();
  if (failed()) return *std::move(error_);
  return std::move(program_);
}

Result<Program> Parser::run() {
  advance();
  accept_new_line();
  signature();
  lines();
  check_all_assigned();
  check_seeds();
  if (failed()) return *std::move(error_);
  return std::move(program_);
}

void Parser::lines() {
  while (accept_new_line() || token_.kind != TokenKind::End) {
    if (token_.kind == TokenKind::End) return;
    line();
  }
}

void Parser::line() {
  auto target = expect_name("a name to define");
  if (!target) return;
  auto it = names_.find(target->text);
  Name* meaning = it == names_.end() ? nullptr : &it->second;
  if (meaning && (meaning->value != no_node || (meaning->kind != NameKind::Result && !meaning->wants_default)))
    return fail(target->offset, "'" + std::string(target->text) + "' is already defined at " +
                                    to_string(place_of(text_, meaning->offset)));
  if (!expect("=")) return;
  std::size_t offset = token_.offset;
  NodeId value = right_side(*target, meaning);
  if (failed()) return;
  if (!at_line_end()) return fail_here("an operator or the end of the line");

  if (!meaning) {
    bool leaf = program_[value].arity == 0;
    if (!leaf) program_.give_name(value, std::string(target->text));
    return define(*target, {NameKind::Line, 0, target->offset, value});
  }
  meaning->offset = target->offset;
  if (meaning->kind == NameKind::Result) {
    program_.results[meaning->index].value = meaning->value = value;
  } else {
    check_reads_before(value, meaning->index, offset);
    meaning->wants_default = false;
    program_.operands[meaning->index].fallback = value;
  }
}

NodeId Parser::right_side(const Token& target, const Name* meaning) {
  if (token_.kind == TokenKind::Name)
    if (std::optional<Callable> called = callable_named(token_.text); called && called->form == CallForm::WholeResult)
      return column_reduction(*called, target, meaning);
  std::size_t offset = token_.offset;
  NodeId id = expression();
  if (failed() || !meaning) return id;
  bool result = meaning->kind == NameKind::Result;
  const Spread& spread = result ? program_.results[meaning->index].spread : program_.operands[meaning->index].spread;
  value(id, offset);
  if (result && needs_column_sum(spread))
    fail(offset, "several elements land on one entry of '" + std::string(target.text) +
                     "': its right side must be colsum(e) or colmax(e) as a whole");
  check_fits(id, spread, target.text, offset);
  return id;
}

NodeId Parser::column_reduction(const Callable& called, const Token& target, const Name* meaning) {
  const std::size_t offset = token_.offset;
  const std::string shown(token_.text);
  if (!meaning || meaning->kind != NameKind::Result) {
    fail(offset, shown + " stands only as the whole right side of a result");
  } else if (!takes_column_sum(program_.results[meaning->index].spread)) {
    fail(offset, "each row has its own entries in '" + std::string(target.text) + "', which takes no " + shown + "; " +
                     (called.op == Op::ColumnSum ? "sum(e) sums a row" : "amax(e) is a row's largest"));
  }
  Token name = token_;
  advance();
  NodeId id = call(name, called);
  if (!failed() && !at_line_end()) fail(token_.offset, shown + "(e) must be the whole right side");
  return id;
}

void Parser::check_fits(NodeId id, const Spread& spread, std::string_view name, std::size_t offset) {
  if (failed()) return;
  auto check = [&](bool differs, const char* along, const char* hint) {
    if (differs)
      fail(offset,
           "this value differs from " + std::string(along) + ", and '" + std::string(name) + "' does not" + hint);
  };
  const ColumnSpread wanted = spread_of(spread.column);
  if (wanted.is_group() && !fits(spreads_[id], wanted))
    return fail(offset, spreads_[id].is_group()
                            ? "this value has other groups of columns than '" + std::string(name) +
                                  "': they are the same only where their indices are"
                            : "this value differs inside the groups of columns of '" + std::string(name) +
                                  "'; sum, mean, amax and amin reduce a group: sum(e, j / g)");
  const bool plain = spread.column.present && (wanted.is_group() || !spread.column.divided());
  check(program_[id].by_column && !plain, "column to column", "; sum, mean, amax and amin reduce a row");
  check(program_[id].by_row && !(spread.row.present && !spread.row.divided()), "row to row", "");
}

void Parser::check_reads_before(NodeId id, std::size_t operand, std::size_t offset) {
  for (NodeId each = static_cast<NodeId>(operands_read_.size()); each < program_.size(); ++each) {
    const Node& node = program_[each];
    std::size_t last = node.op == Op::Operand ? static_cast<std::size_t>(node.payload) + 1 : 0;
    for (NodeId arg : node) last = std::max(last, operands_read_[arg]);
    operands_read_.push_back(last);
  }
  if (operands_read_[id] > operand)
    fail(offset, "the default of '" + program_.operands[operand].name +
                     "' may only read operands that stand before it, not '" +
                     program_.operands[operands_read_[id] - 1].name + "'");
}

void Parser::check_all_assigned() {
  auto check = [&](const std::string& name) {
    if (failed()) return;
    const Name& meaning = names_.find(name)->second;
    if (meaning.kind == NameKind::Result && meaning.value == no_node)
      fail(meaning.offset, "the result '" + name + "' is never assigned");
    if (meaning.wants_default) fail(meaning.offset, "no line gives the default of '" + name + "'");
  };
  for (const Operand& each : program_.operands) check(each.name);
  for (const Output& each : program_.results) check(each.name);
}

void Parser::check_length(const Token& name) {
  if (name.text.size() > max_name_bytes)
    fail(name.offset, "a name has at most " + std::to_string(max_name_bytes) + " characters");
}

void Parser::define(const Token& name, Name meaning) {
  check_length(name);
  if (failed()) return;
  if (is_reserved(name.text)) return fail(name.offset, "'" + std::string(name.text) + "' is reserved");
  auto [it, fresh] = names_.emplace(name.text, meaning);
  if (!fresh)
    fail(name.offset,
         "'" + std::string(name.text) + "' is already defined at " + to_string(place_of(text_, it->second.offset)));
}

}  // namespace trireme
