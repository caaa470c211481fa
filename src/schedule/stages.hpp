// Splits an expanded program into stages at its row reductions.
// One stage is one sweep over the row; what a later sweep needs is kept or reloaded, as the config says.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace trireme {

// Totals that one sweep makes of the same elements.
struct FoldTotals {
  std::int64_t fold;  // index into folds() (math/reductions.hpp)
  NodeId element;
  NodeId weight = no_node;                           // of a weighted fold
  std::array<NodeId, 2> nodes = {no_node, no_node};  // where some value asks for it
};

struct Stage {
  std::vector<NodeId> reductions;       // Sum, Amax, Amin whose values this sweep finishes
  std::vector<FoldTotals> folds;        // the same of folds
  std::vector<std::size_t> stores;      // element results written during it
  std::vector<std::size_t> columns;     // column-sum results it adds to
  std::vector<std::size_t> group_sums;  // results whose columns share entries: it leaves their terms
  std::vector<NodeId> groups;           // reductions inside groups of columns: the same

  bool reduces() const { return !reductions.empty() || !folds.empty(); }
  // Numbers a row that the sweep reduces to: those of its reductions, then two a fold.
  std::size_t totals() const { return reductions.size() + 2 * folds.size(); }
  // What it evaluates for each element: of everything listed above.
  std::vector<NodeId> elements(const Program& program) const;
};

struct Stages {
  std::vector<Stage> sweeps;
  std::vector<std::size_t> row_stores;      // results per row, written after the sweep that finishes them
  std::vector<std::size_t> row_sums;        // column sums of values per row, added to after the last sweep
  std::vector<std::size_t> column_results;  // results that are column sums, in order

  bool sums_groups() const {
    return std::any_of(sweeps.begin(), sweeps.end(),
                       [](const Stage& each) { return !each.group_sums.empty() || !each.groups.empty(); });
  }
  bool reduces() const {  // along rows
    return std::any_of(sweeps.begin(), sweeps.end(), [](const Stage& each) { return each.reduces(); });
  }
};

// A result without a value is another kernel's. `over_operands`, per result: element results that may lie on an
// operand. Those are written by the last sweep, after which nobody reads the row's operands any more; all others as
// early as they are known. `in_chunks`, per node: reductions inside groups that a chunk holds whole, known at once.
Stages split_into_stages(const Program& program, const std::vector<bool>& over_operands = {},
                         const std::vector<bool>& in_chunks = {});
std::string print(const Stages& stages, const Program& program);

}  // namespace trireme
