// The parser's inside: recursive descent, with the first error kept. parse.hpp is what others include.
//
//   program    = NAME "(" [operand {"," operand}] ")" "->" "(" result {"," result} ")" ["in" TYPE] {line}
//   operand    = NAME [spread [":" TYPE]] ["=" (expression | "...")]    no spread: a constant; its default is a number
//   result     = NAME spread [":" TYPE]
//   spread     = "[" [index ["," index]] "]"
//   index      = ("i" | "j") ["/" divisor] ["%" divisor]                 or with parentheses: (i / a) % b
//   divisor    = NUMBER | "n" | NAME | "(" sum ")"                       a sum of numbers, "n" and constants
//   line       = NAME "=" expression                                     a result, a default left as "...", or a new
//   name expression = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum] sum        = product {("+" | "-") product}
//   product    = unary {("*" | "/") unary}
//   unary      = ["-"] unary | primary                                   "-" before a number is the number's sign
//   primary    = NUMBER | NAME | NAME "(" arguments ")" | "(" expression ")"
//   a reduction's arguments = expression ["," index] | "entries" "(" expression ["," index] ")"
//
// Types and the compute type ("in f32") stand in bound programs only.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/groups.hpp"
#include "language/lexer.hpp"
#include "language/names.hpp"

namespace trireme {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), lexer_(text) {}
  Result<Program> run();
  Result<Program> signature_alone();

 private:
  enum class NameKind { Constant, Operand, Result, Line };
  struct Name {
    NameKind kind;
    std::size_t index;           // into operands or results
    std::size_t offset;          // where it was defined
    NodeId value = no_node;      // of a result or line, once it has one
    bool wants_default = false;  // an operand whose default is "...", until its line comes
  };
  const Name* picker() const;
  Axis picked(const Name& by);

  // parse_signature.cpp
  void signature();
  void declare_ahead();
  void operand();
  bool default_of(std::size_t operand);
  void result();
  void binding();
  std::optional<Type> type_after_colon(const Token& name);
  std::optional<Type> type();
  Spread spread();
  Axis index(std::string_view expected);
  NodeId divisor();
  NodeId inside_divisor();
  NodeId divisor_leaf();

  // parse.cpp: the lines
  void lines();
  void line();
  NodeId right_side(const Token& target, const Name* meaning);
  NodeId column_reduction(const Callable& called, const Token& target, const Name* meaning);
  void check_fits(NodeId value, const Spread& spread, std::string_view name, std::size_t offset);
  void check_reads_before(NodeId value, std::size_t operand, std::size_t offset);
  void check_all_assigned();
  void check_length(const Token& name);
  void define(const Token& name, Name meaning);

  // parse_expression.cpp
  NodeId expression();
  NodeId sum();
  NodeId product();
  NodeId unary();
  NodeId primary();
  NodeId name();
  NodeId call(const Token& name, const Callable& callable);
  void check_seed(NodeId seed, std::size_t offset);
  void check_seeds();

  // parse_groups.cpp
  bool at_entries() const;
  Axis group();
  NodeId reduction(const Token& name, const Callable& callable);

  void check_rotation(NodeId by, std::size_t offset);
  void check_first(NodeId first, bool is_row, std::size_t offset);  // row or column of random()
  std::int64_t last_argument(const Callable& callable);
  NodeId value(NodeId id, std::size_t offset);  // id, if it is a value and not a condition
  std::optional<double> number_literal();
  NodeId add(Op op, std::initializer_list<NodeId> args, std::int64_t payload = 0);
  NodeId add(Op op, std::span<const NodeId> args, std::int64_t payload = 0);
  NodeId unknown(const Token& name, bool called);

  // parser.cpp: tokens and errors
  void advance();
  bool accept_new_line();
  bool accept(std::string_view symbol);
  bool expect(std::string_view symbol, std::string_view why = {});
  bool expect_separator(std::size_t opened);  // between arguments
  std::string to_close(std::size_t opened) const;
  bool expect_close(std::string_view symbol, std::size_t opened);
  std::optional<Token> expect_name(std::string_view what);
  bool at_line_end() const { return token_.kind == TokenKind::NewLine || token_.kind == TokenKind::End; }

  // Records the first error; what follows it runs out quickly, because the text then ends.
  void fail(std::size_t offset, const std::string& message);
  void fail_here(const std::string& expected);  // "expected …, found …"
  bool failed() const { return error_.has_value(); }

  class Deeper;  // counts the nesting of what is being parsed

  std::string_view text_;
  Lexer lexer_;  // stands behind token_
  Token token_;
  std::size_t last_end_ = 0;  // where the token before ended
  int depth_ = 0;
  bool in_divisor_ = false;  // where arithmetic is of constants, numbers and n alone
  std::optional<Error> error_;

  Program program_;
  ColumnSpreads spreads_{program_};
  std::unordered_map<std::string_view, Name> names_;
  // The signature's names, known before it is parsed: an index may name a constant that stands further on.
  std::unordered_map<std::string_view, std::size_t> constants_ahead_;  // to their index among the operands
  std::unordered_map<std::string_view, std::int64_t>
      symbols_ahead_;                           // operands in memory and results; -1: not yet used
  std::map<NodeId, std::size_t> seeds_;         // of random(), to where they were first used so
  std::vector<std::size_t> operands_read_;      // by node: the last operand it reads, plus 1
  std::optional<std::size_t> typed_, untyped_;  // where the first name with a type stands, and without
};

// Keeps recursion within max_depth: one of these stands in every function that encloses others.
class Parser::Deeper {
 public:
  explicit Deeper(Parser& parser);
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;

 private:
  Parser& parser_;
};

}  // namespace trireme
