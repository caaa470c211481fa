// trireme tune --table FILE: searches schedules for a sample of what operators are used for, and writes down those that
// are worth it (schedule/tuned.hpp).
#include "tune_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <random>

#include "devices/arguments.hpp"
#include "measure.hpp"
#include "plan/ops.hpp"
#include "plan/remarks.hpp"
#include "plan/tune.hpp"
#include "progress.hpp"
#include "schedule/tuned.hpp"
#include "sources.hpp"

namespace trireme::cli {
namespace {

constexpr std::int64_t widths[] = {128,   256,   512,   896,   1024,   1152,   2048,   2880,   3584,  4096,
                                   5120,  7168,  8192,  11008, 12288,  14336,  16384,  18432,  18944, 28672,
                                   32000, 32768, 50304, 65536, 128256, 131072, 151936, 256000, 262144};

// An operator as its first '#: try' line has it, at another width, in another type.
struct TablePoint {
  const OperatorText* op;
  bool backward;
  Type type;
  std::int64_t columns;

  Result<Problem> problem(std::int64_t bytes_an_array) const {
    TRIREME_TRY(remarks, parse_remarks(op->text));
    TRIREME_TRY(problem, parse_problem(fmt::format("{} {}", op->name, remarks.tries.at(0))));
    TRIREME_TRY(program, load_program(std::string(op->name), false));
    const std::int64_t rows = bytes_an_array / static_cast<std::int64_t>(bytes(type)) / columns;
    problem.shape = {std::max<std::int64_t>(rows, 1), columns};
    problem.axes = 1;
    problem.backward = backward;
    problem.absent.clear();
    for (const Operand& operand : program.operands)
      if (operand.spread.row.present && operand.spread.column.present) {
        problem.types[operand.name] = type;
        break;
      }
    return problem;
  }
};

std::string key_of(const TunedLine& line) { return fmt::format("{} {:>8}", line.problem_class, line.config.columns); }

std::map<std::string, std::string> read_table(const std::string& path) {
  std::map<std::string, std::string> lines;  // by class and columns
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (Result<TunedLine> parsed = parse_tuned_line(line)) lines[key_of(*parsed)] = line;
  return lines;
}

}  // namespace

Result<int> tune_table(const DeviceEntry& device, const TuneTableOptions& options) {
  TRIREME_TRY(machine, device.machine());
  std::vector<TablePoint> points;
  for (const OperatorText& op : operator_texts())
    for (bool backward : {false, true})
      for (Type type : {Type::BF16, Type::F16, Type::F32})
        for (std::int64_t columns : widths) points.push_back({&op, backward, type, columns});
  std::shuffle(points.begin(), points.end(), std::mt19937_64(options.seed));
  std::map<std::string, std::string> lines = read_table(options.file);
  std::vector<double> gains;
  const auto began = std::chrono::steady_clock::now();
  auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  Progress progress(fmt::format("tuning for {} on {}", options.file, device.name));
  for (const TablePoint& point : points) {
    if (spent() > 60 * options.minutes) break;
    progress.at(spent() / (60 * options.minutes));
    TRIREME_TRY(problem, point.problem(options.megabytes << 20));
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
    TunedLine line{.share = best.copy_seconds / best.seconds,
                   .of_chosen = chosen.seconds / best.seconds,
                   .problem_class = problem_class(prepared->program, machine, facts),
                   .config = best.config};
    gains.push_back(line.of_chosen);
    line.model = line.of_chosen <= options.worth;
    const std::string text = fmt::format("{}  # {}", print(line), print(problem));
    if (options.every || !line.model) fmt::print("{}\n", text), std::fflush(stdout);
    lines[key_of(line)] = text;
  }
  if (gains.empty())
    return Error{Code::Unsupported, "no problem could be timed in " + fmt::to_string(options.minutes) + " minutes"};
  std::ofstream file(options.file);
  file << fmt::format(
      "# Schedules for {}, where the search was worth it: share of a copy, by the cost model's choice, class,\n"
      "# schedule. Written by trireme tune --table on {}.\n",
      machine.tuned, options.where);
  for (const auto& [key, text] : lines) file << text << "\n";
  if (!file.flush()) return Error{Code::InvalidArgument, options.file + ": cannot be written"};
  std::sort(gains.begin(), gains.end());
  fmt::print("{} problems, {} lines; the best by what was chosen: median {:.3f}, nine tenths {:.3f}, most {:.3f}\n",
             gains.size(), lines.size(), gains[gains.size() / 2], gains[gains.size() * 9 / 10], gains.back());
  return fine;
}

}  // namespace trireme::cli
