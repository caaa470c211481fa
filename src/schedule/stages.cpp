#include "schedule/stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/groups.hpp"
#include "math/reductions.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {

namespace {

NodeId& total_of(Stage& stage, const Node& node) {
  const std::int64_t fold = node.payload / 2;
  const NodeId weight = node.arity > 1 ? node.args[1] : no_node;
  auto same = [&](const FoldTotals& each) {
    return each.fold == fold && each.element == node.args[0] && each.weight == weight;
  };
  auto found = std::find_if(stage.folds.begin(), stage.folds.end(), same);
  if (found == stage.folds.end())
    found = stage.folds.insert(found, {.fold = fold, .element = node.args[0], .weight = weight});
  return found->nodes[node.payload % 2];
}

}  // namespace

std::vector<NodeId> Stage::elements(const Program& program) const {
  std::vector<NodeId> ids;
  for (NodeId id : reductions) ids.push_back(program[id].args[0]);
  for (const FoldTotals& each : folds) {
    ids.push_back(each.element);
    if (each.weight != no_node) ids.push_back(each.weight);
  }
  for (std::size_t r : stores) ids.push_back(program.results[r].value);
  for (std::size_t r : columns) ids.push_back(program[program.results[r].value].args[0]);
  for (std::size_t r : group_sums) ids.push_back(program[program.results[r].value].args[0]);
  for (NodeId id : groups) ids.push_back(program[id].args[0]);
  return ids;
}

Stages split_into_stages(const Program& program, const std::vector<bool>& over_operands,
                         const std::vector<bool>& in_chunks) {
  // sweep_of[id]: the first sweep in which the node's value can be used; a reduction is finished by the one before.
  std::vector<std::size_t> sweep_of(program.size(), 0);
  std::vector<bool> used = reachable(program);
  Stages stages;
  auto sweep = [&](std::size_t k) -> Stage& {
    if (stages.sweeps.size() <= k) stages.sweeps.resize(k + 1);
    return stages.sweeps[k];
  };
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!used[id]) continue;
    std::size_t from = 0;
    for (NodeId arg : program[id]) from = std::max(from, sweep_of[arg]);
    sweep_of[id] = from;
    const bool group = program[id].op == Op::Group && !(id < in_chunks.size() && in_chunks[id]);
    if (!is_row_reduction(program[id].op) && !group) continue;
    sweep_of[id] = from + 1;
    if (group) sweep(from).groups.push_back(id);
    else if (program[id].op == Op::Fold) total_of(sweep(from), program[id]) = id;
    else sweep(from).reductions.push_back(id);
  }
  std::vector<std::size_t> late;
  for (std::size_t k = 0; k < program.results.size(); ++k) {
    const Output& result = program.results[k];
    if (result.value == no_node) continue;
    const Node& node = program[result.value];
    if (is_column_reduction(node.op)) {
      stages.column_results.push_back(k);
      if (node.payload == of_row_values) stages.row_sums.push_back(k);
      else if (!result.spread.column.plain()) sweep(sweep_of[node.args[0]]).group_sums.push_back(k);
      else sweep(sweep_of[node.args[0]]).columns.push_back(k);
    } else if (result.spread.column.present) {
      Stage& first = sweep(sweep_of[result.value]);
      if (k < over_operands.size() && over_operands[k]) late.push_back(k);
      else first.stores.push_back(k);
    } else {
      stages.row_stores.push_back(k);
    }
  }
  for (std::size_t k : late) stages.sweeps.back().stores.push_back(k);
  return stages;
}

std::string print(const Stages& stages, const Program& program) {
  std::string text;
  for (std::size_t k = 0; k < stages.sweeps.size(); ++k) {
    const Stage& stage = stages.sweeps[k];
    text += fmt::format("sweep {}\n", k);
    for (NodeId id : stage.reductions) {
      const std::string* name = program.name_of(id);
      text += fmt::format("  reduce {} {}\n", facts(program[id].op).name, name ? *name : fmt::format("%{}", id));
    }
    for (NodeId id : stage.groups) {
      const std::string* name = program.name_of(id);
      text += fmt::format("  reduce groups {} {}\n", facts(group_of(program[id]).op).name,
                          name ? *name : fmt::format("%{}", id));
    }
    for (const FoldTotals& each : stage.folds) {
      const std::string* name = program.name_of(each.element);
      text += fmt::format("  fold {} {}\n", name_of_total(2 * each.fold + 1),
                          name ? *name : fmt::format("%{}", each.element));
    }
    for (std::size_t r : stage.stores) text += fmt::format("  store {}\n", program.results[r].name);
    for (std::size_t r : stage.group_sums) text += fmt::format("  sum groups of {}\n", program.results[r].name);
    for (std::size_t r : stage.columns) text += fmt::format("  add to columns {}\n", program.results[r].name);
  }
  for (std::size_t r : stages.row_stores) text += fmt::format("store per row {}\n", program.results[r].name);
  for (std::size_t r : stages.row_sums) text += fmt::format("add to rows {}\n", program.results[r].name);
  return text;
}

}  // namespace trireme
