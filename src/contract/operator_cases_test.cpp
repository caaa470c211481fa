// The cases of contract/vectors that are operators of ops/, forward and backward.
#include <fmt/format.h>

#include "contract/vector_for_test.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "passes/passes.hpp"
#include "plan/ops.hpp"

namespace trireme::vectors {
namespace {

std::string text_of(const std::string& name) {
  for (const OperatorText& each : operator_texts())
    if (each.name == name) return print(parse(each.text).value());
  return "";
}

}  // namespace

// Backwards without what their forwards save: defaults recompute it.
std::vector<Case> operator_cases(bool backward) {
  struct Chosen {
    const char* name;
    Type type;
    std::map<std::string, double> constants = {};
    std::map<std::string, std::pair<double, double>> wholes = {};
    std::int64_t rows = 3, columns = 66;
    std::map<std::string, Rule> rules = {};
  };
  const Rule infinities = Bits{0x3F800000u, 0xFF800000u, 0x7F800000u, 0xC0000000u};
  const std::map<std::string, Rule> likely = {{"old", range(-6, -4)}, {"reference", range(-6, -4)}};
  const std::vector<Chosen> chosen = {
      {"rms_norm", Type::F32},
      {"rms_norm", Type::BF16, {{"offset", 1}}},
      {"rms_norm_llama", Type::BF16},
      {"add_rms_norm", Type::F16},
      {"layer_norm", Type::F32, {}, {}, 3, 257},
      {"softmax", Type::F32, {}, {}, 2, 300},
      {"log_softmax", Type::F64},
      {"cross_entropy", Type::F32, {}, {{"target", {-1, 65}}}, 4},
      {"swiglu", Type::F32},
      {"geglu", Type::BF16},
      {"geglu_erf", Type::F32},
      {"group_norm", Type::F32, {{"groups", 3}, {"pixels", 11}}, {}, 6},
      {"grouped_rms_norm", Type::F32, {}, {}, 2, 256},
      {"rope_interleaved", Type::F32, {}, {{"position", {-1, 3}}}},
      {"rope", Type::F32, {}, {{"position", {-1, 3}}}},
      {"poly_norm", Type::F32},
      {"dynamic_tanh", Type::F32},
      {"l2_norm", Type::F32},
      {"embedding", Type::F32, {}, {{"token", {-1, 3}}}},
      {"moe_sum", Type::F32, {{"experts", 3}}, {}, 6},
      {"moe_sum", Type::BF16, {{"experts", 2}}, {}, 6},
      {"moe_sum", Type::F64, {{"experts", 3}}, {}, 7},
      {"matmul", Type::F32, {{"m", 3}}, {}, 12, 257},
      {"matmul", Type::BF16, {{"m", 5}}, {}, 15, 40},
      {"adamw", Type::F32, {{"lr", 0.01}, {"unbias1", 2}, {"unbias2", 5}}, {}, 3, 66, {{"v", range(0, 1)}}},
      {"logprob_entropy", Type::F32, {{"temperature", 0.5}}, {{"target", {-1, 256}}}, 4, 257},
      {"merge_attention_states", Type::F32, {}, {}, 5, 66, {{"lse_b", infinities}}},
      {"merge_attention_states", Type::F64},
      {"softmax_sink", Type::F32, {{"queries", 2}, {"heads", 3}}, {}, 7, 257},
      {"grpo_loss", Type::F32, {{"ignore", 3}}, {{"target", {0, 5}}}, 6, 66, likely},
  };
  std::vector<Case> cases;
  for (const Chosen& each : chosen) {
    Program program = parse(text_of(each.name)).value();
    if (backward) {
      Result<Program> made = differentiate(program);
      if (!made) continue;  // embedding's table takes no gradient
      program = *made;
    }
    Case made{.name = fmt::format("{} {}", program.name, name(each.type)), .program = print(program)};
    made.rows = each.rows, made.columns = each.columns, made.constants = each.constants, made.rules = each.rules;
    std::map<std::string, Type> others;
    for (const auto& [name, ends] : each.wholes) {
      others[name] = Type::I64, made.rules[name] = whole(ends.first, ends.second);
    }
    made.types = all(made.program, each.type, others);
    for (const Operand& operand : program.operands) {
      const bool recomputed = operand.fallback != no_node && program[operand.fallback].op != Op::Number;
      if (recomputed && !operand.constant) made.types.erase(operand.name);
    }
    cases.push_back(std::move(made));
  }
  return cases;
}

}  // namespace trireme::vectors
