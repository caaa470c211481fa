#include "ir/rewrite.hpp"

namespace trireme {

Program with_signature_of(const Program& program) {
  Program out;
  out.name = program.name;
  out.operands = program.operands;
  out.results = program.results;
  out.symbols = program.symbols;
  out.compute = program.compute;
  // Ids of the old program mean nothing in the new one; the presence of an axis does.
  auto forget = [](Spread& spread) {
    for (Axis* axis : {&spread.row, &spread.column}) axis->divide = axis->wrap = no_node;
  };
  for (Operand& operand : out.operands) {
    operand.fallback = no_node;
    forget(operand.spread);
  }
  for (Output& result : out.results) {
    result.value = no_node;
    forget(result.spread);
  }
  return out;
}

}  // namespace trireme
