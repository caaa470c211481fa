#include "ir/rewrite.hpp"
#include "ir/verify.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

// A pass that breaks a program is a fault of ours, not of the program's author.
Status check_after(const char* pass, const Program& program) {
  Status status = verify(program);
  if (status) return Done{};
  return Error{Code::Internal, std::string("after ") + pass + ": " + status.error().message};
}

std::vector<double> constants_of(const Program& bound, const Binding& binding) {
  std::vector<double> constants;
  for (const Operand& operand : bound.operands) {
    std::optional<double> fallback;
    if (operand.constant && operand.fallback != no_node) fallback = as_number(bound, operand.fallback);
    const auto given = binding.constants.find(operand.name);
    constants.push_back(given != binding.constants.end() ? given->second : fallback.value_or(0));
  }
  return constants;
}

}  // namespace

Result<PreparedProgram> prepare(const Program& program, const Binding& binding) {
  TRIREME_CHECK(verify(program));
  TRIREME_TRY(bound, bind(program, binding));
  TRIREME_CHECK(check_after("bind", bound));
  Program simple = simplify(bound);
  TRIREME_CHECK(check_after("simplify", simple));
  TRIREME_TRY(packed, pack(simple, binding.columns));
  TRIREME_CHECK(check_after("pack", packed));
  TRIREME_TRY(primitives, expand(packed));
  TRIREME_CHECK(check_after("expand", primitives));
  Program ready = simplify(primitives);
  TRIREME_CHECK(check_after("simplify", ready));
  std::vector<double> constants = constants_of(bound, binding);
  return PreparedProgram{std::move(bound), in_canonical_order(ready), std::move(constants)};
}

}  // namespace trireme
