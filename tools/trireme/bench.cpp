// trireme bench: times problem lines on each device, in turn with copies of the same number of bytes.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <span>

#include "bench_report.hpp"
#include "device_choice.hpp"
#include "files.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "output.hpp"
#include "plan/threads.hpp"
#include "progress.hpp"
#include "reports.hpp"
#include "roofline.hpp"
#include "trireme/program.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> lines, devices;
  int threads = 1;
  double seconds = 1;
  bool suite = false, json = false, csv = false;
  std::string svg;
  bool table() const { return !json && !csv; }
};

// Rows of language models, of heads, and longer than a cache; both directions, both common types.
std::vector<std::string> suite() {
  std::vector<std::string> lines;
  for (const char* program : {"rms_norm", "layer_norm", "add_rms_norm", "softmax", "swiglu", "geglu"})
    for (const char* shape : {"4096x4096", "65536x128", "256x65536"})
      for (const char* type : {"", " x=bf16"})
        for (const char* direction : {"", " backward"})
          lines.push_back(fmt::format("{} {}{}{}", program, shape, type, direction));
  return lines;
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options), lines_(options.lines) {
    if (options.suite)
      for (const std::string& line : suite()) lines_.push_back(line);
  }

  Result<int> run() {
    TRIREME_TRY(chosen, choose_devices(options_.devices));
    for (const DeviceEntry* device : chosen)
      if (!options_.devices.empty() || device->timed) devices_.push_back(device);
    const bool none = std::ranges::all_of(devices_, [](const DeviceEntry* each) { return !each->missing().empty(); });
    if (none && options_.devices.empty()) devices_.push_back(&reference_device());  // it serves plans here, too
    for (std::size_t k = 0; k < lines_.size(); ++k) TRIREME_CHECK(time_line(k));
    if (options_.json) fmt::print("{}", as_json(measured_));
    if (options_.csv) fmt::print("{}", as_csv(measured_));
    if (!options_.svg.empty()) TRIREME_CHECK(draw());
    return measured_.empty() ? check_failed : code_;
  }

 private:
  Status time_line(std::size_t index) {
    TRIREME_TRY(problem, parse_problem(lines_[index]));
    if (options_.table())
      fmt::print("{}\n{:30} {:>10} {:>10} {:>8}\n", print(problem), "", "best ms", "median ms", "GB/s");
    for (const DeviceEntry* device : devices_) {
      Result<Measurement> measured = time_on(problem, *device, index);
      if (measured) TRIREME_CHECK(take(problem, *std::move(measured)));
      else if (measured.error().code != Code::NoDevice && measured.error().code != Code::Unsupported)
        return measured.error();
      else if (options_.table()) fmt::print("  {:<12} {}\n", device->name, measured.error().message);
      flush_output();
    }
    return Done{};
  }

  Result<Measurement> time_on(const Problem& problem, const DeviceEntry& device, std::size_t index) const {
    if (std::string reason = device.missing(); !reason.empty()) return Error{Code::NoDevice, reason};
    std::string where = lines_.size() > 1 ? fmt::format("[{}/{}] ", index + 1, lines_.size()) : "";
    Progress progress(where + print(problem) + " on " + device.name);
    return measure(problem, device,
                   {.threads = options_.threads, .seconds = options_.seconds, .progress = [&](double part) {
                      progress.at(part);
                    }});
  }

  Status take(const Problem& problem, Measurement measured) {
    if (measured.difference) {
      code_ = check_failed;
      complain(fmt::format("FAIL {} device={} {} got {} want {}   rerun: trireme verify \"{}\" --device {}\n",
                           print(problem), measured.device, measured.difference->element, measured.difference->got,
                           measured.difference->want, print(problem), measured.device));
      return Done{};
    }
    if (options_.table()) fmt::print("{}", table_rows(measured));
    measured_.push_back(std::move(measured));
    return Done{};
  }

  Status draw() const {
    ArithmeticRoofs roofs;
    for (const DeviceEntry* device : devices_) {
      if (!device->missing().empty() || !device->timed) continue;
      Result<double> roof = arithmetic_roof(*device, options_.threads);
      if (roof) roofs[device->name] = *roof;
    }
    const std::string date = fmt::format("{:%F}", fmt::gmtime(std::time(nullptr)));
    const std::string picture =
        roofline_svg(measured_, roofs, {.processor = processor_name(), .version = TRIREME_VERSION, .date = date});
    TRIREME_CHECK(write_file(options_.svg, {}, std::as_bytes(std::span(picture))));
    if (options_.table()) fmt::print("{}: {} points\n", options_.svg, measured_.size());
    return Done{};
  }

  const BenchOptions& options_;
  std::vector<std::string> lines_;
  std::vector<const DeviceEntry*> devices_;
  std::vector<Measurement> measured_;
  int code_ = fine;
};

}  // namespace

Command bench_verb() {
  auto options = std::make_shared<BenchOptions>();
  Command verb{.name = "bench", .summary = "Times problems on each device, beside copies of the same bytes"};
  verb.option("lines", options->lines, "Problem lines, each one argument",
              {.type = "LINE", .words = RowProgram::names});
  verb.option(
      "--suite", options->suite,
      fmt::format("The {} lines of norms, softmax and gated units that docs/performance.md is about", suite().size()));
  verb.option("--device", options->devices, "Only this device (reference, lanes and wasm too, if named); repeatable",
              {.type = "NAME", .words = device_words});
  add_threads(verb, options->threads, "Threads on CPUs, of runs and of copies");
  verb.option("--seconds", options->seconds, "Time to spend on a device",
              {.type = "S", .show_default = true, .real = {{0, 3600}}});
  verb.option("--json", options->json, "A JSON list instead of the table (docs/json.md)");
  verb.option("--csv", options->csv, "Comma-separated values instead of the table", {.excludes = "--json"});
  verb.option("--svg", options->svg, "Also draws a picture: speeds under the roofs of memory and arithmetic",
              {.type = "FILE"});
  verb.footer =
      "GB/s: bytes of all arrays, each read or written once, by the best time. A copy moves the same number of bytes.\n"
      "Results are checked against the reference first; exits with 1 if a bit differs. Each row of JSON and CSV has "
      "the\n"
      "command that measures it again.\n"
      "  trireme bench \"rms_norm 4096x4096 x=bf16\" \"rms_norm 4096x4096 x=bf16 backward\" --threads 2\n"
      "  trireme bench --suite --seconds 0.2 --svg roofline.svg";
  verb.run = [options]() -> Result<int> {
    if (options->lines.empty() && !options->suite)
      return Error{Code::InvalidArgument, "bench: give a problem line, such as \"rms_norm 4096x4096\", or --suite"};
    TRIREME_TRY(threads, threads_asked(options->threads));
    options->threads = threads;
    return Bench(*options).run();
  };
  return verb;
}

}  // namespace trireme::cli
