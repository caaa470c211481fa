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
  // What a call without these operands computes: their defaults stand in their place, and they in no signature. One
  // whose type the program asks for, largest(s), stays for its type alone. Not of a backward: it is the forward that is
  // called.
  Result<RowProgram> without(const std::set<std::string>& absent) const;
  // The same values, but for roundings, by fewer sweeps over the row: a variance by two means and sums of exponentials
  // shifted by a maximum become totals that are made together, so that machines that share a row exchange once. It has
  // no derivative of its own: differentiate, then compose.
  Result<RowProgram> compose() const;
  // Cut at its row reductions, for rows whose columns are spread over several machines (docs/distributed.md). Each
  // machine runs a phase's program on its own columns, then all of them exchange what is listed: neighbouring parts are
  // combined in pairs, level by level, an odd last one moving up unchanged. Later phases take the totals as operands.
  // Unsupported, with the reason, where a program reads columns of other parts.
  struct Exchange;
  struct Phase;
  Result<std::vector<Phase>> split() const;

  RowProgram source() const { return RowProgram(forward_, forward_); }  // what it was differentiated from

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

struct RowProgram::Exchange {
  std::string reduction;           // "sum", "amax", "amin", "variance", "logsumexp"
  std::vector<std::string> names;  // of what is exchanged: one result of the phase's program; of the last two, two
  RowProgram combine;              // two neighbours' values to one: "left", "right", their columns -> "both"
};

// `program` may have the constants `columns`, the number of columns of whole rows, and `first_column`, where a
// machine's part begins (or those with further underscores, where a parameter of the program has the name).
struct RowProgram::Phase {
  RowProgram program;
  std::vector<Exchange> exchanges;
  std::vector<std::string> groups = {};  // "[j / group]": a machine's columns begin and end with whole ones
};

// What `trireme show --split` prints.
TRIREME_API std::string print(const std::vector<RowProgram::Phase>& phases);

}  // namespace trireme
