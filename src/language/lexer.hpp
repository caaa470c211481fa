// Cuts the text of a program into tokens, one at a time.
#pragma once
#include <string>
#include <string_view>

namespace trireme {

enum class TokenKind {
  Name,
  Number,   // decimal or hex float; `inf` and `nan` are names that the parser knows
  Symbol,   // ( ) [ ] , : = + - * / % < <= > >= == != -> ...
  NewLine,  // one or more, outside parentheses and brackets
  End,
  Wrong,  // `problem` says why
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::size_t offset = 0;
  std::string_view text;
  double number = 0;
  std::string problem;

  bool is(std::string_view symbol) const { return kind == TokenKind::Symbol && text == symbol; }
  std::size_t end() const { return offset + text.size(); }
};

std::string describe(const Token& token);  // "')'", "name 'x'", "end of line"

// A lexer is a place in a text: copy it to look ahead.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark, as some editors write
  }
  Token next();

 private:
  Token make(TokenKind kind, std::size_t length);
  Token wrong(std::size_t length, std::string problem);
  Token number();
  Token symbol();
  bool skip_blanks();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t open_ = 0;  // parentheses and brackets; inside them a new line is a blank
};

}  // namespace trireme
