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

struct Line {
  TunedLine line;
  Program program;
  Facts facts;
};

// A table's lines, each with its problem.
Result<std::vector<Line>> lines_of(const TunedTable& table, const Machine& machine) {
  std::ifstream file(fmt::format("{}/tuned/{}.txt", TRIREME_SOURCE_DIR, table.machine));
  TRIREME_TRY(lines, read_tuned({std::istreambuf_iterator<char>(file), {}}));
  std::vector<Line> found;
  for (const auto& [key, line] : lines) {
    TRIREME_TRY(problem, parse_problem(line.problem));
    TRIREME_TRY(prepared, prepare_problem(problem, {}, Fill::NoMemory));
    Facts facts = facts_of(prepared.program, prepared.view());
    if (!machine.simd) facts.rows = std::max(facts.rows, many_rows(machine));
    found.push_back({line, std::move(prepared.program), std::move(facts)});
  }
  return found;
}

TEST(TunedTables, EveryLineIsTaken) {
  for (const TunedTable& table : tuned_tables()) {
    const Machine machine = machine_tuned_as(table.machine).value();
    const Result<std::vector<Line>> lines = lines_of(table, machine);
    ASSERT_TRUE(lines) << lines.error().message;
    for (const auto& [line, program, facts] : *lines) {
      EXPECT_EQ(problem_class(program, machine, facts), line.problem_class) << print(line);
      EXPECT_EQ(line.config.columns, facts.columns) << print(line);
      const std::optional<Config> taken = tuned_config(program, machine, facts);
      if (line.model) {
        EXPECT_FALSE(taken) << print(line);
        continue;
      }
      EXPECT_GT(line.of_chosen, 1) << print(line);
      const Status status = valid(program, line.config, machine, facts);
      EXPECT_TRUE(status) << print(line) << ": " << status.error().message;
      EXPECT_EQ(taken ? print(with_columns(*taken, facts.columns)) : "none", print(line.config)) << print(line);
    }
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

// Without the table, on the table's own problems, the model's choice is made anew. Its speed is known where it is the
// table's own schedule, or one that was timed at such a problem; there it has nine tenths of the tuned speed, in the
// median. A model that goes where nothing was timed fails too: then new times are due (gpu_table --schedules).
TEST(CostModel, ChoosesAsTheTableDoes) {
  Machine machine = machine_tuned_as("sm_90").value();
  const std::span<const TunedTable> tables = tuned_tables();
  const auto table =
      std::find_if(tables.begin(), tables.end(), [&](const TunedTable& each) { return each.machine == machine.tuned; });
  const Result<std::vector<Line>> lines = lines_of(*table, machine);
  ASSERT_TRUE(lines) << lines.error().message;
  machine.tuned = {};
  const std::string folder = TRIREME_SOURCE_DIR "/bench/tables/";
  const auto points = read_timed_schedules({folder + "h200_schedules.txt", folder + "h200.txt"}, 256 << 20);
  ASSERT_TRUE(points) << points.error().message;
  std::map<std::string, double> timed;  // shares, by class and schedule
  auto key = [&](const Program& program, const Facts& facts, const Config& config) {
    return problem_class(program, machine, facts) + "  " + print(config);
  };
  for (const TimedPoint& point : *points)
    for (const TimedSchedule& each : point.schedules) {
      double& share = timed[key(point.program, point.facts, each.config)];
      share = std::max(share, each.share);
    }
  std::size_t same = 0;
  std::vector<double> of_tuned, of_timed;
  for (const auto& [line, program, facts] : *lines) {
    const Config chosen = choose_config(program, machine, facts);
    if (!line.model && print(chosen) == print(line.config)) {
      of_tuned.push_back(1), ++same;
    } else if (const auto found = timed.find(key(program, facts, chosen)); found != timed.end()) {
      of_tuned.push_back(found->second / line.share);
      of_timed.push_back(of_tuned.back());
    }
  }
  fmt::print(
      "{} lines; the model's choice is the line's at {}, timed at {} more: median {:.3f} of those, {:.3f} of all\n",
      lines->size(), same, of_timed.size(), median(of_timed), median(of_tuned));
  EXPECT_GT(of_tuned.size(), 100u);
  EXPECT_GT(median(of_timed), 0.9);
}

}  // namespace
}  // namespace trireme
