#include "math/functions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "ir/rewrite.hpp"

namespace trireme {

namespace {

// Those of contract version 1, as its page and its listings have them; the pages' order is part of what is frozen.
constexpr std::string_view contract_order[] = {"exp",       "log",        "expm1",         "log1p",         "tanh",
                                               "sigmoid",   "erf",        "rsqrt",         "silu",          "gelu",
                                               "gelu_tanh", "gelu_slope", "relu",          "softplus",      "square",
                                               "sign",      "clamp",      "exponent_ceil", "exponent_floor"};

}  // namespace

std::span<const Function> functions() {
  static const std::vector<Function> table = [] {
    std::vector<Function> all = function_records();
    std::sort(all.begin(), all.end(), [](const Function& a, const Function& b) {
      auto place = [](const Function& each) {
        return std::pair(std::find(std::begin(contract_order), std::end(contract_order), each.name), each.name);
      };
      return place(a) < place(b);
    });
    return all;
  }();
  return table;
}

std::optional<std::size_t> function_named(std::string_view name) {
  std::span<const Function> table = functions();
  for (std::size_t k = 0; k < table.size(); ++k)
    if (table[k].name == name) return k;
  return std::nullopt;
}

Formula call(std::string_view name, std::initializer_list<Formula> args) {
  NodeId ids[3];
  std::size_t count = 0;
  for (Formula arg : args) ids[count++] = arg.id;
  Program* program = args.begin()->program;
  return {program, program->add(Op::Call, std::span<const NodeId>(ids, count),
                                static_cast<std::int64_t>(*function_named(name)))};
}

Program expand_calls(Program program) {
  while (has(program, Op::Call))
    program = rewrite(program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
      if (node.op != Op::Call) return copy_node(out, node, args);
      std::array<Formula, 3> values;
      for (std::size_t k = 0; k < args.size(); ++k) values[k] = {&out, args[k]};
      return functions()[node.payload]
          .expand(*program.compute, std::span<const Formula>(values.data(), args.size()))
          .id;
    });
  return program;
}

int instruction_cost(const Program& program, NodeId id) {
  const Node& node = program[id];
  if (node.arity == 0) return 0;
  if (node.op == Op::Div && node.payload && program.compute == Type::F32) return 4;
  if (node.op == Op::Div) return as_number(program, node.args[0]) == 1.0 ? 7 : 9;
  return node.op == Op::Sqrt ? 8 : 1;
}

int instruction_count(const Program& program, NodeId root) {
  std::vector<bool> reached(program.size());
  reached[root] = true;
  int count = 0;
  for (NodeId id = root + 1; id-- > 0;) {
    if (!reached[id]) continue;
    for (NodeId arg : program[id]) reached[arg] = true;
    count += instruction_cost(program, id);
  }
  return count;
}

namespace {

std::string in_unit(ErrorUnit unit, double error) {
  if (error == 0) return "exact";
  char text[40];
  switch (unit) {
    case ErrorUnit::Ulp: std::snprintf(text, sizeof text, "%.3g ulp", error); break;
    case ErrorUnit::Argument: std::snprintf(text, sizeof text, "2^%.4g \\|x\\|", std::log2(error)); break;
    case ErrorUnit::One: std::snprintf(text, sizeof text, "2^%.4g", std::log2(error)); break;
  }
  return text;
}

}  // namespace

std::string function_table_markdown() {
  std::string out =
      "| function | formula | domain | f32 bound | f32 largest | f64 bound | f64 largest | instructions f32 / f64 |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Function& each : functions()) {
    out += "| `" + std::string(each.name) + "` | " + std::string(each.formula) + " | " + std::string(each.domain);
    for (const Accuracy& accuracy : {each.f32, each.f64})
      out += " | " + in_unit(each.unit, accuracy.bound) + " | " + in_unit(each.unit, accuracy.measured);
    out += " | " + std::to_string(each.cost_f32) + " / " + std::to_string(each.cost_f64) + " |\n";
  }
  return out;
}

}  // namespace trireme
