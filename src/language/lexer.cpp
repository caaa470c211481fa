#include "language/lexer.hpp"

#include "language/diagnostic.hpp"
#include "support/parse_number.hpp"

namespace trireme {
namespace {

// Not <cctype>: names do not depend on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// Longest first, so that `<=` is not read as `<`.
constexpr std::string_view symbols[] = {"...", "->", "<=", ">=", "==", "!=", "(", ")", "[", "]",
                                        ",",   ":",  "=",  "+",  "-",  "*",  "/", "%", "<", ">"};

// What people write who come from other languages.
struct Foreign {
  std::string_view text, problem;
};
constexpr Foreign foreign[] = {
    {"**", "there is no '**'; write square(x) or x * x"},
    {"^", "there is no '^'; write square(x) or x * x"},
    {"&", "there is no '&'; write and(a, b)"},
    {"|", "there is no '|'; write or(a, b)"},
    {"!", "there is no '!'; write not(a) or a != b"},
    {"?", "there is no '?'; write select(condition, a, b)"},
    {";", "there is no ';'; a statement ends with its line"},
    {"//", "there is no '//'; a comment begins with '#'"},
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::Name: return "name '" + std::string(token.text.substr(0, 64)) + "'";
    case TokenKind::Number: return "number " + std::string(token.text.substr(0, 64));
    case TokenKind::Symbol: return "'" + std::string(token.text) + "'";
    case TokenKind::NewLine: return "end of line";
    case TokenKind::End: return "end of text";
    case TokenKind::Wrong: return token.problem;
  }
  return {};
}

Token Lexer::make(TokenKind kind, std::size_t length) {
  Token token{kind, at_, text_.substr(at_, length), 0, {}};
  at_ += length;
  return token;
}

Token Lexer::wrong(std::size_t length, std::string problem) {
  Token token = make(TokenKind::Wrong, length);
  token.problem = std::move(problem);
  return token;
}

// Skips blanks and comments, and new lines inside parentheses; true if a new line outside them was met.
bool Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n') {
      if (open_ == 0) return true;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return false;
    }
  }
  return false;
}

Token Lexer::next() {
  if (skip_blanks()) {
    Token token = make(TokenKind::NewLine, 1);
    while (skip_blanks()) ++at_;
    return token;
  }
  if (at_ >= text_.size()) return make(TokenKind::End, 0);
  char c = text_[at_];
  if (is_name_start(c)) {
    std::size_t length = 1;
    while (at_ + length < text_.size() && is_name_part(text_[at_ + length])) ++length;
    return make(TokenKind::Name, length);
  }
  if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number();
  return symbol();
}

Token Lexer::number() {
  std::string_view rest = text_.substr(at_);
  bool hex = rest.starts_with("0x") || rest.starts_with("0X");
  // Everything that could belong to it, so that `2x` and `1.2.3` are one wrong number, not two things in a row.
  std::size_t length = 0;
  for (; length < rest.size(); ++length) {
    char c = rest[length], last = length ? rest[length - 1] : ' ';
    bool exponent = hex ? last == 'p' || last == 'P' : last == 'e' || last == 'E';
    if (!is_name_part(c) && c != '.' && !((c == '+' || c == '-') && exponent)) break;
  }
  std::string_view digits = rest.substr(0, length);
  if (hex) digits.remove_prefix(2);
  // from_chars would take a sign and words such as `inf` too.
  bool starts_well = !digits.empty() && (hex ? is_hex_digit(digits[0]) : is_digit(digits[0]) || digits[0] == '.');
  double value = 0;
  auto [end, status] = parse_f64(digits, value, hex);
  bool whole = starts_well && end == digits.data() + digits.size();
  if (whole && status == std::errc::result_out_of_range) return wrong(length, "this number does not fit f64");
  if (!whole || status != std::errc()) return wrong(length, "malformed number");
  Token token = make(TokenKind::Number, length);
  token.number = value;
  return token;
}

Token Lexer::symbol() {
  std::string_view rest = text_.substr(at_);
  if (!rest.starts_with("!="))
    for (const Foreign& each : foreign)
      if (rest.starts_with(each.text)) return wrong(each.text.size(), std::string(each.problem));
  for (std::string_view each : symbols) {
    if (!rest.starts_with(each)) continue;
    if (each == "(" || each == "[") ++open_;
    if ((each == ")" || each == "]") && open_ > 0) --open_;
    return make(TokenKind::Symbol, each.size());
  }
  unsigned char c = static_cast<unsigned char>(rest[0]);
  std::size_t length = character_bytes(rest);
  if (c >= 0x20 && c != 0x7F && length > 0)
    return wrong(length, "unexpected character '" + std::string(rest.substr(0, length)) + "'");
  constexpr char digits[] = "0123456789ABCDEF";
  return wrong(1, std::string("unexpected byte 0x") + digits[c >> 4] + digits[c & 15]);
}

}  // namespace trireme
