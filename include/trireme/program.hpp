// Row programs: parsed from text or taken from the operators that come with Trireme, printed, differentiated.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/export.hpp"
#include "trireme/result.hpp"

namespace trireme {

class Program;  // the graph behind it, which is Trireme's own

struct DifferentiateOptions {
  // The results whose gradients arrive. Unless said: every [i,j] result and every other that no result uses.
  std::optional<std::set<std::string>> gradients = {};
  // Operands that the forward is called without: where the default is an expression, the gradient flows on into it.
  std::set<std::string> absent = {};
};

// Immutable and cheap to copy; threads may share one.
class TRIREME_API RowProgram {
 public:
  enum class Kind : std::uint8_t { Operand, Constant, Result };
  struct Parameter {
    std::string name;
    Kind kind;
    std::string spread;                   // "[i,j]", "[i % heads, j]"; empty for constants
    bool optional = false;                // an operand or constant with a default
    std::optional<double> fallback = {};  // the default, where it is a number
  };

  RowProgram() = default;                   // none: it has no name and no parameters, and a plan refuses it
  RowProgram(const RowProgram&) = default;  // a move is a copy, too
  RowProgram& operator=(const RowProgram&) = default;
  static Result<RowProgram> parse(std::string_view text);
  static Result<RowProgram> named(std::string_view name);  // an operator that comes with Trireme
  static std::vector<std::string> names();                 // of those

  Result<RowProgram> differentiate(const DifferentiateOptions& options = {}) const;  // "<name>_backward"
  RowProgram source() const { return RowProgram(forward_, forward_); }               // what it was differentiated from

  explicit operator bool() const { return program_ != nullptr; }
  const std::string& name() const;
  std::string print() const;
  std::vector<Parameter> signature() const;  // operands and constants, then results

  const Program& graph() const;
  const Program& forward() const;  // itself unless made by differentiate()
  bool is_backward() const { return forward_ != program_; }

 private:
  RowProgram(std::shared_ptr<const Program> forward, std::shared_ptr<const Program> program);
  std::shared_ptr<const Program> forward_, program_;
};

}  // namespace trireme
