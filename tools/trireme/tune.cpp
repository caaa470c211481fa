// trireme tune LINE: tries the schedules worth trying for one problem, and remembers the fastest for this device.
#include "plan/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "device_choice.hpp"
#include "devices/arguments.hpp"
#include "devices/parallel.hpp"
#include "measure.hpp"
#include "plan/check.hpp"
#include "progress.hpp"
#include "sources.hpp"
#include "trireme/device.hpp"
#include "trireme/program.hpp"
#include "tune_table.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct TuneOptions {
  std::string line, device = "cpu";
  int threads = 1;
  double seconds = 0.05;
  TuneTableOptions table;
};

// A winner must be worth remembering: runs differ by some percent by themselves.
constexpr double worth = 1.02;

Result<int> tune(const TuneOptions& options) {
  TRIREME_TRY(named, Device::named(options.device));
  const DeviceEntry& device = named.entry();
  if (std::string reason = device.missing(); !reason.empty()) return Error{Code::NoDevice, reason};
  if (!options.table.file.empty()) {
    if (!options.line.empty())
      return Error{Code::InvalidArgument, "--table samples problems itself, and takes no line"};
    TuneTableOptions table = options.table;
    table.threads = options.threads;
    table.where = device.name;
    return tune_table(device, table);
  }
  if (options.line.empty()) return Error{Code::InvalidArgument, "a problem line is needed, or --table"};
  TRIREME_TRY(problem, parse_problem(options.line));
  TRIREME_TRY(prepared, load_problem(problem));
  Progress progress("tuning " + print(problem) + " on " + device.name);
  TRIREME_TRY(tried, try_configs(device, prepared.program, prepared.view(),
                                 {.threads = options.threads,
                                  .seconds = options.seconds,
                                  .bytes = bytes_moved(prepared),
                                  .progress = [&](double part) { progress.at(part); }}));
  fmt::print("{} on {}: {} schedules\n", print(problem), device.name, tried.size());
  auto show = [](const Tried& each, std::string_view remark) {
    fmt::print("  {:>10.4f} ms  {}{}\n", each.seconds * 1e3, print(each.config), remark);
  };
  show(tried[0], "   (chosen without a search)");
  for (std::size_t k = 1; k < std::min<std::size_t>(tried.size(), 4); ++k) show(tried[k], "");
  const Tried& winner = tried.size() > 1 && tried[0].seconds > tried[1].seconds * worth ? tried[1] : tried[0];
  TRIREME_CHECK(remember_config(device, prepared.program, facts_of(prepared.program, prepared.view()), winner.config));
  fmt::print("remembered, for plans of this problem on this device: {}\n", print(winner.config));
  return fine;
}

}  // namespace

Command tune_verb() {
  auto options = std::make_shared<TuneOptions>();
  Command verb{.name = "tune", .summary = "Searches the fastest schedule of a problem, and remembers it"};
  verb.option("line", options->line, "The problem", {.type = "LINE", .words = RowProgram::names});
  verb.option("--device", options->device, "cpu, or a name that 'doctor' lists",
              {.type = "NAME", .show_default = true, .words = device_words});
  verb.option("--threads", options->threads, "Threads on CPUs",
              {.type = "N", .show_default = true, .whole = {{1, max_parts}}});
  verb.option("--seconds", options->seconds, "Time to spend on a schedule", {.type = "S", .show_default = true});
  verb.option("--table", options->table.file,
              "Samples problems of all operators instead, and adds the schedules worth it to a table of tuned/",
              {.type = "FILE"});
  verb.option("--minutes", options->table.minutes, "--table: time to spend", {.type = "M", .show_default = true});
  verb.footer =
      "Schedules change speed, never bits. The winner lies in the kernel cache, and plans take it by themselves;\n"
      "'trireme cache clear' forgets it.\n"
      "  trireme tune \"rms_norm 4096x4096 x=bf16 backward\" --threads 2\n"
      "  trireme tune --table tuned/sm_90.txt --device cuda --minutes 10";
  verb.run = [options] { return tune(*options); };
  return verb;
}

}  // namespace trireme::cli
