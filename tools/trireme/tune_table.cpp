// trireme tune --table FILE: searches schedules for a sample of what operators are used for, and writes down those that
// are worth it (schedule/tuned.hpp).
#include "tune_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <span>

#include "devices/arguments.hpp"
#include "files.hpp"
#include "measure.hpp"
#include "plan/operator_points.hpp"
#include "plan/tune.hpp"
#include "progress.hpp"
#include "schedule/shape.hpp"
#include "schedule/tuned.hpp"
#include "sources.hpp"

namespace trireme::cli {
Result<int> tune_table(const DeviceEntry& device, const TuneTableOptions& options) {
  if (!device.machine) return Error{Code::Unsupported, "the " + device.name + " device has no configs to choose from"};
  TRIREME_TRY(machine, device.machine());
  if (machine.tuned.empty())
    return Error{Code::Unsupported,
                 device.name + ": its machine reads no table of tuned/, and would not find this one"};
  // Before minutes are spent: can it be written?
  if (Result<NewFile> file = NewFile::write(options.file, {}, {}); !file) return file.error();
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
    // A host's pages of zeros would all be one page.
    Result<Prepared> prepared = device.accelerator ? load_empty_problem(problem) : load_problem(problem);
    if (!prepared) continue;  // an operator may have no backward
    const Facts facts = facts_of(prepared->program, prepared->view());
    Facts many = facts;
    many.rows = std::max(facts.rows, many_rows(machine));
    if (!is_as_in_tables(prepared->program, machine, many)) continue;
    Result<std::vector<Tried>> tried = try_configs(device, prepared->program, prepared->view(),
                                                   {.threads = options.threads,
                                                    .seconds = options.seconds,
                                                    .most = options.most,
                                                    .bytes = bytes_moved(*prepared),
                                                    .by_model = true});
    if (!tried || tried->size() < 2) continue;
    const Tried &chosen = (*tried)[0], &best = (*tried)[1].seconds < chosen.seconds ? (*tried)[1] : chosen;
    const TunedLine line{.share = best.copy_seconds / best.seconds,
                         .of_chosen = chosen.seconds / best.seconds,
                         .problem_class = problem_class(prepared->program, machine, facts),
                         .config = with_columns(best.config, facts.columns),
                         .problem = print(problem)};
    gains.push_back(line.of_chosen);
    fmt::print("{}\n", print(line)), std::fflush(stdout);
    add_tuned(lines, line);
  }
  if (gains.empty())
    return Error{Code::Unsupported, "no problem could be timed in " + fmt::to_string(options.minutes) + " minutes"};
  const std::string text = print_tuned(lines, options.where);
  TRIREME_CHECK(write_file(options.file, {}, std::as_bytes(std::span(text))));
  std::sort(gains.begin(), gains.end());
  fmt::print("{} problems, {} lines; the best by what was chosen: median {:.3f}, nine tenths {:.3f}, most {:.3f}\n",
             gains.size(), lines.size(), gains[gains.size() / 2], gains[gains.size() * 9 / 10], gains.back());
  return fine;
}

}  // namespace trireme::cli
