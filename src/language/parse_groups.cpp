// Reductions of a row, of groups of its columns, and of the groups' entries:
//
//   sum(e)   sum(e, j / g)   sum(e, j % g)   sum(entries(e))   sum(entries(e, j / g))
//
// What a reduction runs over stands in its node from here on. The last form says the groups where `e` does not.
#include "ir/groups.hpp"
#include "language/parser.hpp"

namespace trireme {

// Perhaps in parentheses, which mean nothing.
bool Parser::at_entries() const {
  Lexer ahead = lexer_;
  Token token = token_;
  while (token.is("(")) token = ahead.next();
  return token.kind == TokenKind::Name && token.text == "entries" && ahead.next().is("(");
}

Axis Parser::group() {
  const std::size_t offset = token_.offset;
  if (!token_.is("(") && token_.text != "j") fail_here("a group of columns, j / g or j % g");
  const Axis axis = index("j");
  if (!failed() && !is_group(axis))
    fail(offset, axis.plain() ? "a group of columns is j / g or j % g; without one a reduction takes the whole row"
                              : "a group of columns is j / g or j % g, and not both");
  return axis;
}

NodeId Parser::reduction(const Token& name, const Callable& callable) {
  const std::string shown = "'" + std::string(name.text) + "'";
  const std::size_t opened = token_.offset;
  if (!accept("(")) {
    fail(name.offset, shown + " is a function; its arguments in parentheses are missing");
    return no_node;
  }
  const bool entries = at_entries();
  std::vector<std::size_t> around;
  for (; entries && token_.is("("); advance()) around.push_back(token_.offset);
  if (entries) advance();
  const std::size_t inner = token_.offset;
  if (entries) expect("(");
  if (token_.is(")")) fail(name.offset, shown + " takes a value, found none");
  Deeper deeper(*this);
  const std::size_t offset = token_.offset;
  const NodeId id = value(expression(), offset);
  ColumnSpread domain;
  if (!failed() && !token_.is(")") && expect_separator(inner)) domain = spread_of(group());
  if (entries) expect_close(")", inner);
  for (; !around.empty(); around.pop_back()) expect_close(")", around.back());
  expect_close(")", opened);
  if (failed()) return no_node;
  if (entries) {
    const ColumnSpread& given = spreads_[id];
    if (domain.is_one() && given.is_group()) domain = given;
    if (domain.is_one())
      fail(offset, given.is_one()
                       ? "entries(e) takes a value for each group, such as amax(x, j / 32); this is one a row"
                       : "entries(e) takes a value for each group, such as amax(x, j / 32); this differs "
                         "inside them");
    else if (!fits(given, domain)) fail(offset, "this value is not one for each of these groups");
  }
  if (domain.is_one()) return add(callable.op, {id}, callable.payload);
  return add(Op::Group, {id, domain.by}, payload_of({callable.op, domain.wraps, entries}));
}

}  // namespace trireme
