// Schedules that were timed on an H200, as lines of text.
#pragma once
#include <fstream>
#include <map>
#include <sstream>

#include "bench/operator_point.hpp"
#include "devices/arguments.hpp"
#include "plan/check.hpp"

namespace trireme::bench {

struct Timed {
  double share;
  Config config;
  double registers;
};

struct TimedPoint {
  std::string name;
  Problem problem;
  Program program;
  Facts facts;
  std::vector<Timed> schedules;
};

inline const Machine& h200() {
  static const Machine machine = must(must(find_target("ptx"))->machine("sm_90"));
  return machine;
}

// What `gpu_table` printed, with or without --schedules.
inline std::vector<TimedPoint> read_times(const std::vector<std::string>& paths, std::int64_t bytes_an_array) {
  std::vector<TimedPoint> points;
  std::map<std::string, std::size_t> known;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || !std::isdigit(line[0])) continue;
      std::istringstream words(line);
      double share = 0;
      std::string op, direction, type, columns, config;
      words >> share >> op >> direction >> type >> columns;
      std::getline(words, config);
      const std::size_t end = config.find("  registers=");
      const double registers = end == config.npos ? 0 : std::atof(config.c_str() + end + 12);
      config = config.substr(0, end);
      const std::string name = op + " " + direction + " " + type + " " + columns;
      auto [at, added] = known.try_emplace(name, points.size());
      if (added) {
        const Point point{operator_text(op), direction == "backward", *type_named(type), std::atoll(columns.c_str())};
        const Problem problem = must(point.problem(bytes_an_array));
        const Prepared prepared = must(prepare_problem(problem, {}, Fill::NoMemory));
        points.push_back({name, problem, prepared.program, facts_of(prepared.program, prepared.view()), {}});
      }
      points[at->second].schedules.push_back({share, must(parse_config(config)), registers});
    }
  }
  return points;
}

}  // namespace trireme::bench
