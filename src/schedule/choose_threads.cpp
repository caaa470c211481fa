#include <algorithm>
#include <limits>

#include "schedule/candidates.hpp"
#include "schedule/choose.hpp"
#include "schedule/cost.hpp"
#include "schedule/tuned.hpp"

namespace trireme {

// Batches of most sizes share their kernels: less than a row for each processor, some, many. Where rows are summed, the
// contract's blocks of rows are what runs side by side, in any batch.
static std::int64_t usual_rows(const Program& program, const Machine& machine, std::int64_t rows) {
  const bool sums = std::any_of(program.results.begin(), program.results.end(),
                                [&](const Output& each) { return is_column_reduction(program[each.value].op); });
  if (sums || rows >= many_rows(machine)) return 8 * many_rows(machine);
  return rows > machine.processors ? 4 * machine.processors : machine.processors;
}

Config choose_for_threads(const Program& program, const Machine& whole, const Facts& problem) {
  const Machine machine = machine_for(program, whole, problem);
  Facts facts = problem;
  // Of a product of matrices its left rows are the batch.
  const std::int64_t rows = tiled_by(program, problem.layout, problem.columns).value_or(1);
  facts.rows = usual_rows(program, machine, (problem.rows + rows - 1) / rows) * rows;
  if (std::optional<Config> tuned = tuned_config(program, machine, facts)) return *tuned;
  const ThreadCost cost(program, machine, facts);
  const std::vector<Config> candidates = candidate_configs(program, machine, facts);
  // The first of those that cost the same: rounding, which differs between compilers, does not choose.
  constexpr double less = 1 - 1e-6;
  // There is none for programs that are not lowered: lower() then says why.
  const Config* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Config& each : candidates)
    if (const double seconds = cost(each); !best || seconds < least * less) best = &each, least = seconds;
  return best ? *best : Config{.simd = false, .lanes = 32, .groups = 32, .columns = facts.columns, .streaming = true};
}

}  // namespace trireme
