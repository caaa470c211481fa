// The functions of the language that are not primitives, each one record. To add a function, add a record.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "ir/build.hpp"

namespace trireme {

struct Function {
  std::string_view name;
  int arity;
  std::string_view formula;  // for docs

  // The value as a fixed sequence of primitives (or of other functions) in the compute type: what every target runs.
  Expr (*expand)(Type compute, std::span<const Expr> args);

  // The derivative with respect to args[k], given the function's own value; no_node where there is none (conditions).
  Expr (*derivative)(std::span<const Expr> args, Expr value, int k);
};

std::span<const Function> functions();
std::optional<std::size_t> function_named(std::string_view name);

// A call of a function in a graph: `call("rsqrt", {x})`.
Expr call(std::string_view name, std::initializer_list<Expr> args);

}  // namespace trireme
