// What a ProgramBuilder records: declarations, lines, and nodes as they were written. program() makes the program of
// it, in the order of its lines. C++ does not fix the order in which the sides of `a + b` are evaluated, so nodes are
// numbered then and not when they are made: the same lines give the same program under every compiler, and the same as
// their text.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.hpp"
#include "trireme/builder.hpp"

namespace trireme {

// A node as it was written: `a > b` keeps its sides, although the graph has only `b < a`.
struct WrittenNode {
  Op op = Op::Number;
  bool swapped = false;
  std::vector<std::uint32_t> args = {};
  std::int64_t payload = 0;
  std::string symbol = {};  // of Cast and Largest
  bool index = false;       // `j % g`, and `entries(e, j / g)`: parts of a reduction, no values
};

struct BuilderState : std::enable_shared_from_this<BuilderState> {
  struct Declared {
    std::string declaration;  // "x[i,j]", or a constant's name
    std::optional<std::uint32_t> default_value = {};
  };
  struct Line {
    std::string name;  // of a result, an operand whose default it is, or a new one
    std::uint32_t value;
  };
  enum class Meaning { Operand, Constant, Result, Line };
  struct Name {
    Meaning meaning;
    std::optional<std::uint32_t> value = {};  // none: a result that no line has assigned yet
  };

  std::string name;
  std::vector<Declared> operands;
  std::vector<std::string> results;
  std::vector<Line> lines;
  std::map<std::string, Name> names;  // in order: messages must not depend on a hash
  std::vector<WrittenNode> nodes;
  std::optional<Error> error;  // the first

  void fail(const std::string& message);
  Expr wrong();                 // an expression of this program that stands for a mistake already told
  Expr node(std::uint32_t id);  // one that is there
  Expr add(WrittenNode node);
  Expr number(double value);
  Expr operation(WrittenNode node, std::span<const Expr> args, const std::string& shown);

  std::optional<std::string> name_of(std::string_view declaration);
  bool define(const std::string& wanted, Name meaning);
  Expr declare(const std::string& wanted, std::string_view declaration, Meaning meaning, const Expr* default_value);
  Expr line(const std::string& target, const Expr& value);
  void default_value(const std::string& operand, const Expr& value);
  std::string suggestion_for(std::string_view unknown) const;
  Result<Program> program() const;

  // The builder that an operation on these belongs to; null where all are plain numbers or nothing.
  static BuilderState* builder_of(std::span<const Expr> args);
  // A mistake that belongs to no builder; the first that uses it reports it.
  static Expr unowned();
  static std::optional<double> plain_number(const Expr& expr);
  Expr reduction(Op op, std::span<const Expr> args, const std::string& shown);  // groups of columns among them

 private:
  std::optional<std::uint32_t> take(const Expr& expr, const std::string& user);
  bool check_argument(Op op, int k, std::uint32_t arg, const std::string& shown);
};

}  // namespace trireme
