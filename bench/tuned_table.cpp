// Folds timed schedules into a table of tuned schedules (schedule/tuned.hpp): where a point's best is faster than what
// was chosen for it without a table.
//
//   tuned_table TABLE CHOSEN TIMES...
//
// CHOSEN and TIMES are what gpu_table prints; CHOSEN's choices are the cost model's. Lines of the table stay unless a
// point has a faster schedule.
#include "bench/must.hpp"
#include "plan/timed_schedules.hpp"
#include "schedule/tuned.hpp"
#include "schedule/valid.hpp"
#include "targets/targets.hpp"

using namespace trireme;
using namespace trireme::bench;

int main(int argc, char** argv) {
  if (argc < 3) return fmt::print("tuned_table TABLE CHOSEN TIMES...\n"), 2;
  const Machine machine = must(must(find_target("ptx"))->machine("sm_90"));
  std::ifstream file(argv[1]);
  TunedLines lines = must(read_tuned({std::istreambuf_iterator<char>(file), {}}));
  std::map<std::string, double> chosen;
  for (const TimedPoint& each : must(read_timed_schedules({argv[2]}, 512 << 20)))
    chosen[each.point.name()] = each.schedules[0].share;
  for (TimedPoint& each : must(read_timed_schedules({argv + 2, argv + argc}, 512 << 20))) {
    // A table's arrays may lie better than a problem's own.
    std::erase_if(each.schedules, [valid = Validity(each.program, machine, each.facts)](const TimedSchedule& timed) {
      return !valid(timed.config);
    });
    const auto without = chosen.find(each.point.name());
    if (each.schedules.empty() || without == chosen.end()) continue;
    const TimedSchedule& best =
        *std::max_element(each.schedules.begin(), each.schedules.end(),
                          [](const TimedSchedule& a, const TimedSchedule& b) { return a.share < b.share; });
    add_tuned(lines, {.share = best.share,
                      .of_chosen = best.share / without->second,
                      .problem_class = problem_class(each.program, machine, each.facts),
                      .config = best.config,
                      .problem = print(each.problem)});
  }
  std::ofstream(argv[1]) << print_tuned(lines, "an NVIDIA H200");
  fmt::print("{}: {} lines\n", argv[1], lines.size());
}
