// trireme tune --table FILE: searches schedules for a sample of what operators are used for, and writes down those that
// are worth it (schedule/tuned.hpp).
#include "tune_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>

#include "devices/arguments.hpp"
#include "measure.hpp"
#include "plan/operator_points.hpp"
#include "plan/tune.hpp"
#include "progress.hpp"
#include "schedule/tuned.hpp"
#include "sources.hpp"

namespace trireme::cli {
Result<int> tune_table(const DeviceEntry& device, const TuneTableOptions& options) {
  TRIREME_TRY(machine, device.machine());
  std::vector<OperatorPoint> points = operator_points();
  std::shuffle(points.begin(), points.end(), std::mt19937_64(options.seed));
  std::ifstream known(options.file);
  TRIREME_TRY(lines, read_tuned({std::istreambuf_iterator<char>(known), {}}));
  std::vector<double> gains;
  const auto began = std::chrono::steady_clock::now();
  auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  Progress progress(fmt::format("tuning for {} on {}", options.file, device.name));
  for (const OperatorPoint& point : points) {
    if (spent() > 60 * options.minutes) break;
    progress.at(spent() / (60 * options.minutes));
    TRIREME_TRY(problem, point.problem(point.rows_of(options.megabytes << 20)));
    Result<Prepared> prepared = load_empty_problem(problem);
    if (!prepared) continue;  // an operator may have no backward
    const Facts facts = facts_of(prepared->program, prepared->view());
    Result<std::vector<Tried>> tried = try_configs(device, prepared->program, prepared->view(),
                                                   {.threads = options.threads,
                                                    .seconds = options.seconds,
                                                    .most = options.most,
                                                    .bytes = bytes_moved(*prepared)});
    if (!tried || tried->size() < 2) continue;
    const Tried &chosen = (*tried)[0], &best = (*tried)[1].seconds < chosen.seconds ? (*tried)[1] : chosen;
    const TunedLine line{.share = best.copy_seconds / best.seconds,
                         .of_chosen = chosen.seconds / best.seconds,
                         .problem_class = problem_class(prepared->program, machine, facts),
                         .config = best.config,
                         .problem = print(problem)};
    gains.push_back(line.of_chosen);
    fmt::print("{}\n", print(line)), std::fflush(stdout);
    add_tuned(lines, line);
  }
  if (gains.empty())
    return Error{Code::Unsupported, "no problem could be timed in " + fmt::to_string(options.minutes) + " minutes"};
  std::ofstream file(options.file);
  file << print_tuned(lines, options.where);
  if (!file.flush()) return Error{Code::InvalidArgument, options.file + ": cannot be written"};
  std::sort(gains.begin(), gains.end());
  fmt::print("{} problems, {} lines; the best by what was chosen: median {:.3f}, nine tenths {:.3f}, most {:.3f}\n",
             gains.size(), lines.size(), gains[gains.size() / 2], gains[gains.size() * 9 / 10], gains.back());
  return fine;
}

}  // namespace trireme::cli
