// How the parser moves through the tokens, and how it stops at the first error.
#include "language/parser.hpp"

#include "language/diagnostic.hpp"
#include "language/parse.hpp"

namespace trireme {

Parser::Deeper::Deeper(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ > max_depth)
    parser_.fail(parser_.token_.offset, "this is nested deeper than " + std::to_string(max_depth));
}

void Parser::advance() {
  last_end_ = token_.end();
  token_ = lexer_.next();
}

bool Parser::accept_new_line() {
  if (token_.kind != TokenKind::NewLine) return false;
  advance();
  return true;
}

bool Parser::accept(std::string_view symbol) {
  if (!token_.is(symbol)) return false;
  advance();
  return true;
}

bool Parser::expect(std::string_view symbol, std::string_view why) {
  if (accept(symbol)) return true;
  std::string expected = "'" + std::string(symbol) + "'";
  if (!why.empty()) expected.append(" ").append(why);
  fail_here(expected);
  return false;
}

std::string Parser::to_close(std::size_t opened) const {
  return "to close the '" + std::string(text_.substr(opened, 1)) + "' at " + to_string(place_of(text_, opened));
}

bool Parser::expect_close(std::string_view symbol, std::size_t opened) {
  if (accept(symbol)) return true;  // place_of() reads the whole text: only for an error
  return expect(symbol, to_close(opened));
}

bool Parser::expect_separator(std::size_t opened) {
  if (accept(",")) return true;
  fail_here("',' or ')' " + to_close(opened));
  return false;
}

std::optional<Token> Parser::expect_name(std::string_view what) {
  if (token_.kind != TokenKind::Name) {
    fail_here(std::string(what));
    return std::nullopt;
  }
  Token name = token_;
  advance();
  return name;
}

void Parser::fail(std::size_t offset, const std::string& message) {
  if (failed()) return;
  error_ = error_at(text_, offset, message);
  lexer_ = Lexer({});
  token_ = {};
}

void Parser::fail_here(const std::string& expected) {
  if (token_.kind == TokenKind::Wrong) return fail(token_.offset, token_.problem);
  // The end of a line is where its last token ends, not behind the comment.
  fail(at_line_end() ? last_end_ : token_.offset, "expected " + expected + ", found " + describe(token_));
}

}  // namespace trireme
