// trireme verify: runs problem lines on every device and compares the bits with the reference's.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "device_choice.hpp"
#include "output.hpp"
#include "plan/difference.hpp"
#include "plan/gradient_check.hpp"
#include "plan/ops.hpp"
#include "plan/threads.hpp"
#include "problem/remarks.hpp"
#include "reference/oracle.hpp"
#include "reports.hpp"
#include "sources.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

// An element of the oracle's takes 48 bytes.
constexpr std::int64_t most_oracle_elements = 1 << 22;

struct VerifyOptions {
  std::vector<std::string> lines, devices;
  bool all = false, json = false;
  RunOptions run;

  // The command that shows a failure again.
  std::string rerun(const std::string& line, const std::string& device) const {
    std::string text = fmt::format("trireme verify \"{}\" --device {} --threads {}", line, device, run.threads);
    return run.chunk_rows ? text + fmt::format(" --chunk {}", run.chunk_rows) : text;
  }
};

// Why a device takes no part; nothing if it does.
std::optional<DeviceOutcome> why_not(const DeviceEntry& device, const Prepared& prepared, bool asked_for) {
  if (std::string reason = device.missing(); !reason.empty())
    return DeviceOutcome{device.name, Outcome::Missing, reason};
  std::int64_t elements = prepared.problem.rows() * prepared.problem.columns();
  if (device.most_elements && !asked_for && elements > device.most_elements)
    return DeviceOutcome{device.name, Outcome::Skipped,
                         fmt::format("slow beyond {} elements, ask by --device {}", device.most_elements, device.name)};
  return std::nullopt;
}

std::string status_text(const DeviceOutcome& outcome) {
  switch (outcome.outcome) {
    case Outcome::Same: return "same bits";
    case Outcome::Different: return "OTHER BITS";
    case Outcome::Error: return "error: " + outcome.reason;
    case Outcome::Missing: return "missing: " + outcome.reason;
    case Outcome::Skipped: return "skipped: " + outcome.reason;
    case Outcome::Unsupported: return "unsupported: " + outcome.reason;
  }
  return {};
}

// What goes wrong is counted in the report, and a line of text names it with the command that shows it again.
class Verifier {
 public:
  Verifier(const VerifyOptions& options, const std::vector<const DeviceEntry*>& chosen)
      : options_(options), chosen_(chosen) {}
  VerifyReport report;

  Status verify(const std::string& line) {
    TRIREME_TRY(problem, parse_problem(line));
    TRIREME_TRY(prepared, load_problem(problem));
    ProblemReport& found = report.problems.emplace_back(ProblemReport{.problem = print(problem)});
    say(found.problem + "\n");
    TRIREME_CHECK(run_once(reference_device(), prepared, options_.run));
    const KeptResults wanted = keep_results(prepared);
    found.digest = digest_of(prepared);
    say_row(reference_device().name, found.digest, "(the reference)");
    TRIREME_CHECK(ask_oracle(prepared, found));
    if (problem.backward) TRIREME_CHECK(ask_differences(problem, found));
    for (const DeviceEntry* device : chosen_) {
      if (device == &reference_device()) continue;
      found.devices.push_back(run_on(*device, prepared, wanted, found));
      say_outcome(found.devices.back(), found.problem);
    }
    return Done{};
  }

  void say(const std::string& text) const {
    if (!options_.json) fmt::print("{}", text), flush_output();
  }

 private:
  void say_row(const std::string& device, const std::string& digest, const std::string& status) const {
    say(fmt::format("  {:<12} {:<32}  {}\n", device, digest.empty() ? "-" : digest, status));
  }

  void say_outcome(const DeviceOutcome& outcome, const std::string& problem) const {
    say_row(outcome.device, outcome.digest, status_text(outcome));
    if (outcome.rerun.empty()) return;
    std::string what = outcome.outcome == Outcome::Error ? outcome.reason : "results differ";
    if (outcome.first)
      what = fmt::format("{} got {} want {}", outcome.first->element, outcome.first->got, outcome.first->want);
    say(fmt::format("FAIL {} device={} {}   rerun: {}\n", problem, outcome.device, what, outcome.rerun));
  }

  // How far the results at hand lie from exact mathematics, and how far the contract's roundings allow.
  Status ask_oracle(const Prepared& prepared, ProblemReport& found) {
    if (prepared.problem.rows() * prepared.problem.columns() > most_oracle_elements) {
      found.without_oracle = fmt::format("slow beyond {} elements", most_oracle_elements);
      return Done{};
    }
    Result<std::vector<OracleResult>> oracle = oracle_of(prepared);
    if (!oracle && oracle.error().code == Code::Unsupported) {
      found.without_oracle = oracle.error().message;
      say(fmt::format("  oracle       unsupported: {}\n", found.without_oracle));
      return Done{};
    }
    if (!oracle) return oracle.error();
    std::vector<LargestError> errors = largest_errors(prepared.bound, *oracle, prepared.result_elements());
    for (std::size_t k = 0; k < errors.size(); ++k) {
      const LargestError& each = errors[k];
      const std::string element = element_name(prepared.bound.results[k], each.row, each.column);
      found.oracle.push_back({element, each});
      say(fmt::format(
          "  oracle       {:<14} error {:.2e}, bound {:.2e}{}\n", element, each.error, each.tolerance,
          each.unknown ? fmt::format(", {} of {} elements cannot be judged", each.unknown, each.elements) : ""));
      if (each.fine()) continue;
      ++report.failed;
      say(fmt::format("FAIL {0} {1} got {2} want {3} within {4}; {5} of {6} elements   rerun: trireme verify \"{0}\"\n",
                      found.problem, element, each.got, static_cast<double>(each.want), each.tolerance, each.wrong,
                      each.elements));
    }
    return Done{};
  }

  // Whether the gradients, in f64, are what the forward's differences are.
  Status ask_differences(const Problem& problem, ProblemReport& found) {
    TRIREME_TRY(text, load_text(problem.program));
    TRIREME_TRY(check, check_gradient(problem, text));
    found.differences = check;
    if (!check.skipped.empty()) {
      say(fmt::format("  differences  skipped: {}\n", check.skipped));
      return Done{};
    }
    say(fmt::format("  differences  {:<14} error {:.2e}, bound {:.2e}\n", "in f64", check.error(), check.bound));
    if (check.fine()) return Done{};
    ++report.failed;
    say(
        fmt::format("FAIL {0} the gradients' slope is {1}, by differences {2} within {3}   rerun: trireme verify "
                    "\"{0}\"\n",
                    found.problem, check.derivative, check.difference, check.bound));
    return Done{};
  }

  DeviceOutcome run_on(const DeviceEntry& device, Prepared& prepared, const KeptResults& wanted,
                       const ProblemReport& found) {
    if (auto reason = why_not(device, prepared, !options_.devices.empty())) return *std::move(reason);
    Status done = run_once(device, prepared, options_.run);
    if (!done && done.error().code == Code::Unsupported)
      return {device.name, Outcome::Unsupported, done.error().message};
    ++report.compared;
    DeviceOutcome outcome{device.name, Outcome::Same};
    if (done) outcome.digest = digest_of(prepared);
    if (outcome.digest == found.digest) return outcome;
    ++report.failed;
    outcome.outcome = done ? Outcome::Different : Outcome::Error;
    if (done) outcome.first = first_difference(prepared, wanted);
    else outcome.reason = done.error().message;
    outcome.rerun = options_.rerun(found.problem, device.name);
    return outcome;
  }

  const VerifyOptions& options_;
  const std::vector<const DeviceEntry*>& chosen_;
};

struct AllLines {
  std::vector<std::string> lines, without_backward;
};

// Every `#: try` of every operator, forward and, where there are gradients, backward.
Result<AllLines> lines_of_all() {
  AllLines all;
  for (const OperatorText& each : operator_texts()) {
    TRIREME_TRY(remarks, parse_remarks(each.text));
    Result<Program> backward = load_backward(std::string(each.name));
    if (!backward) all.without_backward.push_back(backward.error().message);
    for (const std::string& line : remarks.tries) {
      all.lines.push_back(fmt::format("{} {}", each.name, line));
      if (backward) all.lines.push_back(all.lines.back() + " backward");
    }
  }
  return all;
}

Result<int> verify(const VerifyOptions& options) {
  TRIREME_TRY(chosen, choose_devices(options.devices));
  Verifier verifier(options, chosen);
  VerifyReport& report = verifier.report;
  std::vector<std::string> lines = options.lines;
  if (options.all) {
    TRIREME_TRY(all, lines_of_all());
    lines.insert(lines.end(), all.lines.begin(), all.lines.end());
    report.without_backward = all.without_backward;
    for (const std::string& reason : all.without_backward) verifier.say(fmt::format("no backward: {}\n", reason));
  }
  for (const std::string& line : lines) TRIREME_CHECK(verifier.verify(line));
  if (options.json) fmt::print("{}", as_json(report));
  else if (report.problems.size() > 1)
    fmt::print("{} problems, {} comparisons with the reference, {} failed\n", report.problems.size(), report.compared,
               report.failed);
  // Who names a device wants it compared.
  bool nothing_done = !options.devices.empty() && report.compared == 0 && chosen.front() != &reference_device();
  return report.failed || nothing_done ? check_failed : fine;
}

}  // namespace

Command verify_verb() {
  auto options = std::make_shared<VerifyOptions>();
  Command verb{.name = "verify", .summary = "Runs problems on every device and compares their bits"};
  verb.option("lines", options->lines, "Problem lines, each one argument",
              {.type = "LINE", .words = RowProgram::names});
  verb.option("--all", options->all, "Every '#: try' line of every operator, forward and backward");
  verb.option("--device", options->devices, "Only this device beside the reference; repeatable",
              {.type = "NAME", .words = device_words});
  add_threads(verb, options->run.threads, "Threads on CPUs; the bits do not depend on it");
  verb.option("--chunk", options->run.chunk_rows, "Rows handed over at a time; the bits do not depend on it",
              {.type = "ROWS", .whole = at_least(1)});
  verb.option("--json", options->json, "JSON instead of lines (docs/json.md)");
  verb.footer =
      "A problem line: PROGRAM ROWSxCOLUMNS [NAME=TYPE] [NAME=none] [NAME=NUMBER] [backward] [axes=K] [seed=N]\n"
      "  trireme verify \"rms_norm 33x4097 x=bf16 gamma=none eps=1e-5 backward\"\n"
      "Exits with 1 if any bit differs, and names the first element that does.";
  verb.run = [options]() -> Result<int> {
    if (options->lines.empty() && !options->all)
      return Error{Code::InvalidArgument, "verify: give a problem line, such as \"rms_norm 7x257\", or --all"};
    TRIREME_TRY(threads, threads_asked(options->run.threads));
    options->run.threads = threads;
    return verify(*options);
  };
  return verb;
}

}  // namespace trireme::cli
