// Folds timed schedules into a table of tuned schedules (schedule/tuned.hpp): where a point's best is faster than what
// was chosen for it without a table.
//
//   tuned_table TABLE CHOSEN TIMES...
//
// CHOSEN and TIMES are what gpu_table prints; CHOSEN's choices are the cost model's. Lines of the table stay unless a
// point has a faster schedule.
#include "bench/timed_schedules.hpp"
#include "schedule/tuned.hpp"
#include "schedule/valid.hpp"

using namespace trireme;
using namespace trireme::bench;

namespace {
std::string key_of(const TunedLine& line) { return fmt::format("{} {:>8}", line.problem_class, line.config.columns); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return fmt::print("tuned_table TABLE CHOSEN TIMES...\n"), 2;
  constexpr double worth = 1.02;
  std::map<std::string, std::pair<double, std::string>> lines;  // by class and columns: share, text
  std::ifstream table(argv[1]);
  for (std::string line; std::getline(table, line);)
    if (auto read = parse_tuned_line(line)) lines[key_of(*read)] = {read->share, line};
  std::map<std::string, double> chosen;
  for (const TimedPoint& each : read_times({argv[2]}, 512 << 20)) chosen[each.name] = each.schedules[0].share;
  for (TimedPoint& each : read_times({argv + 2, argv + argc}, 512 << 20)) {
    std::erase_if(each.schedules, [valid = Validity(each.program, h200(), each.facts)](const Timed& timed) {
      return !valid(timed.config);  // a table's arrays may lie better than a problem's own
    });
    if (each.schedules.empty()) continue;
    const auto without = chosen.find(each.name);
    if (without == chosen.end()) continue;
    const Timed& best = *std::max_element(each.schedules.begin(), each.schedules.end(),
                                          [](const Timed& a, const Timed& b) { return a.share < b.share; });
    const double gain = best.share / without->second;
    TunedLine line{gain > worth ? best.share : without->second, gain > worth ? gain : 1,
                   problem_class(each.program, h200(), each.facts), gain <= worth, best.config};
    line.config.columns = each.facts.columns;
    auto& known = lines[key_of(line)];
    if (line.share > known.first) known = {line.share, fmt::format("{}  # {}", print(line), print(each.problem))};
  }
  std::erase_if(lines, [](const auto& each) { return each.second.second.empty(); });
  table.close();
  std::ofstream out(argv[1]);
  out << "# Schedules that a search found to be faster than the cost model's choice: share of a copy, times faster, "
         "class,\n"
         "# schedule, what it was measured on. An NVIDIA H200, arrays of 256 to 512 MiB.\n";
  for (const auto& [key, line] : lines) out << line.second << "\n";
  fmt::print("{}: {} lines\n", argv[1], lines.size());
}
