// What schedules are chosen by: every line of the tuned tables is of the class that its problem has today, fits it, and
// is what a plan takes; and the cost model is held against schedules that were timed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "plan/timed_schedules.hpp"
#include "schedule/tuned.hpp"
#include "schedule/valid.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

// The one that names the table of its schedules so.
Result<Machine> machine_tuned_as(std::string_view table) {
  for (const Target* target : targets())
    for (const std::string_view arch : target->common_archs) {
      TRIREME_TRY(machine, target->machine(arch));
      if (machine.tuned == table) return machine;
    }
  return Error{Code::InvalidArgument, fmt::format("no machine of a target has the table {}", table)};
}

TEST(TunedTables, EveryLineIsTaken) {
  for (const TunedTable& table : tuned_tables()) {
    const Machine machine = machine_tuned_as(table.machine).value();
    std::ifstream file(fmt::format("{}/tuned/{}.txt", TRIREME_SOURCE_DIR, table.machine));
    const Result<TunedLines> lines = read_tuned({std::istreambuf_iterator<char>(file), {}});
    ASSERT_TRUE(lines) << lines.error().message;
    EXPECT_FALSE(lines->empty()) << table.machine;
    std::vector<double> gains;
    for (const auto& [key, line] : *lines) {
      gains.push_back(line.of_chosen);
      const Result<Problem> problem = parse_problem(line.problem);
      ASSERT_TRUE(problem) << print(line) << ": " << problem.error().message;
      const Result<Prepared> prepared = prepare_problem(*problem, {}, Fill::NoMemory);
      ASSERT_TRUE(prepared) << print(line) << ": " << prepared.error().message;
      Facts facts = facts_of(prepared->program, prepared->view());
      EXPECT_EQ(problem_class(prepared->program, machine, facts), line.problem_class) << print(line);
      EXPECT_EQ(line.config.columns, facts.columns) << print(line);
      facts.rows = std::max(facts.rows, many_rows(machine));
      const std::optional<Config> taken = tuned_config(prepared->program, machine, facts);
      if (line.model) {
        EXPECT_FALSE(taken) << print(line);
        continue;
      }
      EXPECT_GT(line.of_chosen, 1) << print(line);
      const Status status = valid(prepared->program, line.config, machine, facts);
      EXPECT_TRUE(status) << print(line) << ": " << status.error().message;
      EXPECT_EQ(taken ? print(*taken) : "none", print(line.config)) << print(line);
    }
    // Without the table the model's choice is within a tenth of the tuned speed, in the median.
    EXPECT_LT(median(gains), 1.1) << table.machine;
  }
}

// Among the schedules of a point that were timed, the one that the model ranks first has nine tenths of the best one's
// speed, in the median; also of the points that its figures were not fitted to, every fourth.
TEST(CostModel, ChoosesAmongTimedSchedules) {
  const Machine machine = machine_tuned_as("sm_90").value();  // of the H200
  const auto points = read_timed_schedules({TRIREME_SOURCE_DIR "/bench/tables/h200_schedules.txt"}, 256 << 20);
  ASSERT_TRUE(points) << points.error().message;
  std::vector<double> all, held_out;
  for (std::size_t k = 0; k < points->size(); ++k) {
    const TimedPoint& each = (*points)[k];
    all.push_back(choose_among(each, ThreadCost(each.program, machine, each.facts)).of_best());
    if (k % 4 == 3) held_out.push_back(all.back());
  }
  EXPECT_GT(held_out.size(), 30u);
  EXPECT_GT(median(all), 0.9);
  EXPECT_GT(median(held_out), 0.9);
}

}  // namespace
}  // namespace trireme
