// trireme bench: times problem lines on each device, in turn with copies of the same number of bytes.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "device_choice.hpp"
#include "measure.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct Options {
  std::vector<std::string> lines, devices;
  int threads = 1;
  double seconds = 1;
  bool json = false;
};

// The others are there for their bits: interpreters, and wasm by a process of node's, whose start would be timed.
bool worth_timing(std::string_view device) {
  return device != "reference" && device != "lanes" && !device.starts_with("wasm");
}

double gigabytes_per_second(const Measurement& measured, double seconds) {
  return static_cast<double>(measured.bytes) / seconds * 1e-9;
}

// Of the fastest copy's speed: 1.00 is all the memory gives.
double share(const Measurement& measured) {
  return best(fastest_copy(measured.timing).seconds) / best(measured.timing.runs);
}

// One line on a terminal that rewrites itself; nothing elsewhere.
class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)), shown_(isatty(STDERR_FILENO)) { show("checking"); }
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  void at(double part) {
    if (int percent = static_cast<int>(part * 100); percent != last_)
      last_ = percent, show(fmt::format("timing {} %", percent));
  }

 private:
  void show(const std::string& state) const {
    if (shown_) fmt::print(stderr, "\r\033[K{}: {}", what_, state);
  }
  std::string what_;
  bool shown_;
  int last_ = -1;
};

void print_table(const Measurement& measured) {
  auto row = [&](const std::string& device, const std::string& what, const std::vector<double>& seconds,
                 const std::string& remark) {
    fmt::print("  {:<12} {:<15} {:>10.4f} {:>10.4f} {:>8.1f}   {}\n", device, what, best(seconds) * 1e3,
               median(seconds) * 1e3, gigabytes_per_second(measured, best(seconds)), remark);
  };
  row(measured.device, "run", measured.timing.runs, fmt::format("{:.2f} of the copy", share(measured)));
  for (const Timing::Copy& copy : measured.timing.copies) row("", copy.name, copy.seconds, "");
  if (!measured.timing.host.empty())
    fmt::print("  {:<12} {:<15} {:>10.4f} {:>10.4f}            of the host's time, apart\n", "", "launch",
               best(measured.timing.host) * 1e3, median(measured.timing.host) * 1e3);
  fmt::print("  {:<12} {}; compiled in {:.1f} ms; best of {}; first {} rows have the reference's bits\n", "",
             measured.how, measured.compile_seconds * 1e3, measured.timing.runs.size(), measured.checked_rows);
}

nlohmann::ordered_json as_json(const Problem& problem, const Options& options, const Measurement& measured) {
  auto times = [&](const std::vector<double>& seconds) {
    return nlohmann::ordered_json{{"best_seconds", best(seconds)},
                                  {"median_seconds", median(seconds)},
                                  {"count", seconds.size()},
                                  {"gigabytes_per_second", gigabytes_per_second(measured, best(seconds))}};
  };
  nlohmann::ordered_json json = {{"problem", print(problem)},
                                 {"device", measured.device},
                                 {"how", measured.how},
                                 {"threads", options.threads},
                                 {"bytes", measured.bytes},
                                 {"checked_rows", measured.checked_rows},
                                 {"compile_seconds", measured.compile_seconds},
                                 {"run", times(measured.timing.runs)},
                                 {"share_of_copy", share(measured)}};
  for (const Timing::Copy& copy : measured.timing.copies) json["copies"][copy.name] = times(copy.seconds);
  if (!measured.timing.host.empty())
    json["host"] = {{"best_seconds", best(measured.timing.host)}, {"median_seconds", median(measured.timing.host)}};
  return json;
}

Result<int> bench(const Options& options) {
  TRIREME_TRY(chosen, choose_devices(options.devices));
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  int code = fine, timed = 0;
  for (const std::string& line : options.lines) {
    TRIREME_TRY(problem, parse_problem(line));
    if (!options.json)
      fmt::print("{}\n{:30} {:>10} {:>10} {:>8}\n", print(problem), "", "best ms", "median ms", "GB/s");
    for (const DeviceEntry* device : chosen) {
      if (options.devices.empty() && !worth_timing(device->name)) continue;
      std::string reason = device->missing();
      Result<Measurement> measured = Error{Code::NoDevice, reason};
      if (reason.empty()) {
        Progress progress(print(problem) + " on " + device->name);
        measured = measure(problem, *device,
                           {.threads = options.threads, .seconds = options.seconds, .progress = [&](double part) {
                              progress.at(part);
                            }});
      }
      if (!measured) {
        Code what = measured.error().code;
        if (what != Code::NoDevice && what != Code::Unsupported) return measured.error();
        if (!options.json) fmt::print("  {:<12} {}\n", device->name, measured.error().message);
        continue;
      }
      ++timed;
      if (measured->difference) {
        code = check_failed;
        fmt::print(stderr, "FAIL {} device={} {} got {} want {}   rerun: trireme verify \"{}\" --device {}\n",
                   print(problem), device->name, measured->difference->element, measured->difference->got,
                   measured->difference->want, print(problem), device->name);
      } else if (options.json) {
        all.push_back(as_json(problem, options, *measured));
      } else {
        print_table(*measured);
      }
      std::fflush(stdout);
    }
  }
  if (options.json) fmt::print("{}\n", all.dump(2));
  return timed ? code : check_failed;
}

}  // namespace

Verb add_bench(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("bench", "Times problems on each device, beside copies of the same bytes");
  auto options = std::make_shared<Options>();
  options->threads = all_threads();
  verb->add_option("lines", options->lines, "Problem lines, each one argument")->type_name("LINE")->required();
  verb->add_option("--device", options->devices,
                   "Only this device (reference, lanes and wasm too, if named); repeatable")
      ->type_name("NAME")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_option("--threads", options->threads, "Threads on CPUs, of runs and of copies")
      ->type_name("N")
      ->check(at_least(1));
  verb->add_option("--seconds", options->seconds, "Time to spend on a device")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3600.0).description(""));
  verb->add_flag("--json", options->json, "A JSON list instead of the table");
  verb->footer(
      "GB/s: bytes of all arrays, each read or written once, by the best time. A copy moves the same number of bytes.\n"
      "On a GPU both are device time, of graphs of several runs; what a launch takes of the host's time stands apart.\n"
      "Results are checked against the reference first; exits with 1 if a bit differs.\n"
      "  trireme bench \"rms_norm 4096x4096 x=bf16\" \"rms_norm 4096x4096 x=bf16 backward\" --threads 2");
  return {verb, [options] { return bench(*options); }};
}

}  // namespace trireme::cli
