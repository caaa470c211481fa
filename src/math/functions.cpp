#include "math/functions.hpp"

namespace trireme {
namespace {

const Function table[] = {
    {"rsqrt", 1, "1 / sqrt(x)",  //
     [](Type, std::span<const Expr> x) { return 1.0 / sqrt(x[0]); },
     [](std::span<const Expr>, Expr y, int) { return -0.5 * (y * y * y); }},
    {"square", 1, "x * x",  //
     [](Type, std::span<const Expr> x) { return x[0] * x[0]; },
     [](std::span<const Expr> x, Expr, int) { return 2.0 * x[0]; }},
};

}  // namespace

std::span<const Function> functions() { return table; }

std::optional<std::size_t> function_named(std::string_view name) {
  for (std::size_t k = 0; k < std::size(table); ++k)
    if (table[k].name == name) return k;
  return std::nullopt;
}

Expr call(std::string_view name, std::initializer_list<Expr> args) {
  NodeId ids[3];
  std::size_t count = 0;
  for (Expr arg : args) ids[count++] = arg.id;
  Program* program = args.begin()->program;
  return {program, program->add(Op::Call, std::span<const NodeId>(ids, count),
                                static_cast<std::int64_t>(*function_named(name)))};
}

}  // namespace trireme
