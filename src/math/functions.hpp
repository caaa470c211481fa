// The functions of the language that are not primitives, each one record. A file of records/ that defines `Function
// NAME()` is all that it takes to add one: cmake/embed.cmake makes the table of what it finds there.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/build.hpp"

namespace trireme {

// What an error is measured in. Results below 2^-125 (f64: 2^-1021) are judged absolutely, by that number itself.
enum class ErrorUnit : std::uint8_t {
  Ulp,       // of the exact result, in the compute type
  Argument,  // |x|
  One,       // absolute
};

struct Accuracy {
  double bound;     // what the contract promises
  double measured;  // the largest error seen; LONG=1 checks it over every f32 and 2^24 samples of f64
};

// The function in more precision than the compute type: double for f32, long double for f64.
// One generic lambda over `const auto* x` gives both.
struct Oracle {
  double (*f32)(const double* x);
  long double (*f64)(const long double* x);
  template <typename Callable>
  constexpr Oracle(Callable formula) : f32(formula), f64(formula) {}
};

struct Function {
  std::string_view name;
  int arity;
  std::string_view formula;  // for docs

  // The value as a fixed sequence of primitives in the compute type: what every target runs.
  Formula (*expand)(Type compute, std::span<const Formula> args);

  // The derivative with respect to args[k], given the function's own value; no_node where there is none (conditions).
  Formula (*derivative)(std::span<const Formula> args, Formula value, int k);

  Oracle oracle;
  std::string_view domain;  // where it is a number, and its limits
  ErrorUnit unit;
  Accuracy f32, f64;
  int cost_f32, cost_f64;  // instruction_count() of the expansion

  const Accuracy& accuracy(Type compute) const { return compute == Type::F64 ? f64 : f32; }
  int cost(Type compute) const { return compute == Type::F64 ? cost_f64 : cost_f32; }
};

// In the order of docs/contract.md, which later functions follow by name.
std::span<const Function> functions();
// As they are found, file by file.
std::vector<Function> function_records();

std::optional<std::size_t> function_named(std::string_view name);

// A call of a function in a graph: `call("rsqrt", {x})`.
Formula call(std::string_view name, std::initializer_list<Formula> args);

// The program with every call replaced by its expansion, and the calls that expansions make by theirs.
Program expand_calls(Program program);

// Instructions of PTX that a node takes: one a primitive, 9 for a division, 7 for 1/x, 8 for a root (their correctly
// rounded forms); a selection is its comparison and itself.
int instruction_cost(const Program& program, NodeId id);
// Of all nodes below `root`, itself included.
int instruction_count(const Program& program, NodeId root);

// Name, formula, domain, bounds, largest errors and counts of every function, as a table of docs/language.md.
std::string function_table_markdown();

}  // namespace trireme
