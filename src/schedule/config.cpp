#include "schedule/config.hpp"

#include <cmath>

#include "ir/integers.hpp"
#include "schedule/choose.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/valid.hpp"

namespace trireme {

bool goes_lane_by_lane(const Program& program, const Layout& layout, std::int64_t group) {
  if (layout.strided()) return true;
  auto whole_registers = [&](const Axis& axis) {  // their lanes have one entry; registers have up to 16
    if (axis.divide == no_node || axis.wrap != no_node) return false;
    const double by = as_number(program, axis.divide).value_or(1);
    if (group && std::fmod(by, static_cast<double>(group)) == 0) return true;
    return group % 16 == 0 && std::fmod(by, 16) == 0;
  };
  for (const Operand& operand : program.operands)
    if (!operand.constant && !operand.spread.column.plain() && !whole_registers(operand.spread.column)) return true;
  for (const Output& result : program.results)  // which lanes have a group's entry
    if (result.value != no_node && !is_column_reduction(program[result.value].op) &&
        result.spread.column.divide != no_node && !whole_registers(result.spread.column))
      return true;
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (used[id] &&
        (program[id].op == Op::Rotate || (program[id].by_column && compares_integers(program, program[id]))))
      return true;
  return false;
}

Config choose_config(const Program& given, const Machine& machine, const Facts& facts) {
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  Config config = machine.simd ? choose_for_simd(program, machine, facts) : choose_for_threads(program, machine, facts);
  config.layout = facts.layout;
  config.group = group_of_stripes(program, facts.columns);
  return config;
}

Result<Config> config_for(const Program& program, const Machine& machine, const Facts& facts) {
  if (!facts.config) return choose_config(program, machine, facts);
  Config config = *facts.config;
  config.layout = facts.layout;
  if (!config.across && fixes_columns(program)) config.columns = facts.columns;
  TRIREME_CHECK(valid(program, config, machine, facts));
  return config;
}

}  // namespace trireme
