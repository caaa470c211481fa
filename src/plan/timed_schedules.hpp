// Schedules that were timed on a GPU, as `gpu_table` prints them: what the cost model is fitted to and held against.
#pragma once
#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "schedule/cost.hpp"

namespace trireme {

struct TimedSchedule {
  double share;
  Config config;
  double registers;  // that the driver took; 0 where the line does not say
};

struct TimedPoint {
  OperatorPoint point;
  Problem problem;
  Program program;
  Facts facts;
  std::vector<TimedSchedule> schedules;
};

// Lines are `SHARE POINT  SCHEDULE[  registers=N ...][  roof=SHARE]`; others are passed over.
inline Result<std::vector<TimedPoint>> read_timed_schedules(const std::vector<std::string>& paths,
                                                            std::int64_t bytes_an_array) {
  std::vector<TimedPoint> points;
  std::map<std::string, std::size_t> known;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file) return Error{Code::InvalidArgument, path + " cannot be read"};
    for (std::string line; std::getline(file, line);) {
      const std::size_t space = line.find(' '), end = line.find("  ");
      if (line.empty() || line[0] < '0' || line[0] > '9' || end == line.npos) continue;
      const std::string name = line.substr(space + 1, end - space - 1);
      const std::size_t more = line.find("  ", end + 2), registers = line.find("  registers=");
      auto [at, added] = known.try_emplace(name, points.size());
      if (added) {
        TRIREME_TRY(point, parse_operator_point(name));
        TRIREME_TRY(problem, point.problem(point.rows_of(bytes_an_array)));
        TRIREME_TRY(prepared, prepare_problem(problem, {}, Fill::NoMemory));
        points.push_back({point, problem, prepared.program, facts_of(prepared.program, prepared.view()), {}});
      }
      TRIREME_TRY(config, parse_config(line.substr(end, more == line.npos ? more : more - end)));
      points[at->second].schedules.push_back(
          {std::stod(line), config, registers == line.npos ? 0 : std::stod(line.substr(registers + 12))});
    }
  }
  return points;
}

// What the model chooses among the schedules of a point.
struct ModelChoice {
  const TimedSchedule* chosen = nullptr;  // none where no cost is finite
  double best = 0;                        // share
  double of_best() const { return chosen ? chosen->share / best : 0; }
};

inline ModelChoice choose_among(const TimedPoint& point, const ThreadCost& cost) {
  ModelChoice choice;
  double least = std::numeric_limits<double>::infinity();
  for (const TimedSchedule& each : point.schedules) {
    choice.best = std::max(choice.best, each.share);
    if (const double seconds = cost(each.config); seconds < least) least = seconds, choice.chosen = &each;
  }
  return choice;
}

}  // namespace trireme
