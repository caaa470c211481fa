// trireme verify: runs problem lines on every device and compares the bits with the reference's.
#include <fmt/format.h>

#include <memory>

#include "device_choice.hpp"
#include "output.hpp"
#include "plan/difference.hpp"
#include "plan/ops.hpp"
#include "plan/remarks.hpp"
#include "plan/threads.hpp"
#include "reference/oracle.hpp"
#include "sources.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

// The interpreter takes 0.8 s for 2^19 elements of rms_norm's backward, and programs with exp or erf many times that.
constexpr std::int64_t most_interpreted_elements = 1 << 21;
// An element of the oracle's takes 48 bytes.
constexpr std::int64_t most_oracle_elements = 1 << 22;

struct VerifyOptions {
  std::vector<std::string> lines, devices;
  bool all = false;
  RunOptions run;

  // The command that shows a failure again.
  std::string rerun(const std::string& line, const std::string& device) const {
    std::string text = fmt::format("trireme verify \"{}\" --device {} --threads {}", line, device, run.threads);
    return run.chunk_rows ? text + fmt::format(" --chunk {}", run.chunk_rows) : text;
  }
};

struct Tally {
  int lines = 0, compared = 0, failed = 0;
};

// Why a device takes no part; empty if it does.
std::string why_not(const DeviceEntry& device, const Prepared& prepared, bool asked_for) {
  if (std::string reason = device.missing(); !reason.empty()) return "missing: " + reason;
  std::int64_t elements = prepared.problem.rows() * prepared.problem.columns();
  if (device.name == "lanes" && !asked_for && elements > most_interpreted_elements)
    return "skipped: slow beyond 2^21 elements, ask by --device lanes";
  return {};
}

void print_device(const std::string& device, std::string_view digest, std::string_view status) {
  fmt::print("  {:<12} {:<32}  {}\n", device, digest, status);
  flush_output();
}

// How far the results at hand lie from exact mathematics, and how far the contract's roundings allow.
Status ask_oracle(const Prepared& prepared, const std::string& title, Tally& tally) {
  if (prepared.problem.rows() * prepared.problem.columns() > most_oracle_elements) return Done{};
  Result<std::vector<OracleResult>> oracle = run_oracle(prepared.bound, prepared.view());
  if (!oracle && oracle.error().code == Code::Unsupported) {
    fmt::print("  oracle       unsupported: {}\n", oracle.error().message);
    return Done{};
  }
  if (!oracle) return oracle.error();
  std::vector<LargestError> errors = largest_errors(prepared.bound, *oracle, prepared.results);
  for (std::size_t k = 0; k < errors.size(); ++k) {
    const LargestError& each = errors[k];
    const std::string element = element_name(prepared.bound.results[k], each.row, each.column);
    fmt::print("  oracle       {:<14} error {:.2e}, bound {:.2e}{}\n", element, each.error, each.tolerance,
               each.unknown ? fmt::format(", {} of {} elements cannot be judged", each.unknown, each.elements) : "");
    if (each.fine()) continue;
    ++tally.failed;
    fmt::print("FAIL {} {} got {} want {} within {}; {} of {} elements   rerun: trireme verify \"{}\"\n", title,
               element, each.got, static_cast<double>(each.want), each.tolerance, each.wrong, each.elements, title);
  }
  return Done{};
}

Status verify_line(const VerifyOptions& options, const std::vector<const DeviceEntry*>& chosen, const std::string& line,
                   Tally& tally) {
  TRIREME_TRY(problem, parse_problem(line));
  TRIREME_TRY(prepared, load_problem(problem));
  const std::string title = print(problem);
  fmt::print("{}\n", title);
  ++tally.lines;
  TRIREME_CHECK(run_once(reference_device(), prepared, options.run));
  const KeptResults wanted = keep_results(prepared);
  const std::string wanted_digest = digest_of(prepared);
  print_device(reference_device().name, wanted_digest, "(the reference)");
  TRIREME_CHECK(ask_oracle(prepared, title, tally));
  for (const DeviceEntry* device : chosen) {
    if (device == &reference_device()) continue;
    if (std::string reason = why_not(*device, prepared, !options.devices.empty()); !reason.empty()) {
      print_device(device->name, "-", reason);
      continue;
    }
    Status done = run_once(*device, prepared, options.run);
    if (!done && done.error().code == Code::Unsupported) {
      print_device(device->name, "-", "unsupported: " + done.error().message);
      continue;
    }
    ++tally.compared;
    std::string digest = done ? digest_of(prepared) : "-";
    if (digest == wanted_digest) {
      print_device(device->name, digest, "same bits");
      continue;
    }
    ++tally.failed;
    std::string what = done ? "results differ" : done.error().message;
    print_device(device->name, digest, done ? "OTHER BITS" : "error: " + what);
    if (std::optional<Difference> first; done && (first = first_difference(prepared, wanted)))
      what = fmt::format("{} got {} want {}", first->element, first->got, first->want);
    fmt::print("FAIL {} device={} {}   rerun: {}\n", title, device->name, what, options.rerun(title, device->name));
  }
  return Done{};
}

// Every `#: try` of every operator, forward and, where there are gradients, backward.
Result<std::vector<std::string>> lines_of_all() {
  std::vector<std::string> lines;
  for (const OperatorText& each : operator_texts()) {
    TRIREME_TRY(remarks, parse_remarks(each.text));
    Result<Program> backward = load_program(std::string(each.name), true);
    if (!backward) fmt::print("no backward: {}\n", backward.error().message);
    for (const std::string& line : remarks.tries) {
      lines.push_back(fmt::format("{} {}", each.name, line));
      if (backward) lines.push_back(lines.back() + " backward");
    }
  }
  return lines;
}

Result<int> verify(const VerifyOptions& options) {
  std::vector<std::string> lines = options.lines;
  if (options.all) {
    TRIREME_TRY(more, lines_of_all());
    lines.insert(lines.end(), more.begin(), more.end());
  }
  TRIREME_TRY(chosen, choose_devices(options.devices));
  Tally tally;
  for (const std::string& line : lines) TRIREME_CHECK(verify_line(options, chosen, line, tally));
  if (tally.lines > 1)
    fmt::print("{} problems, {} comparisons with the reference, {} failed\n", tally.lines, tally.compared,
               tally.failed);
  // Who names a device wants it compared.
  bool nothing_done = !options.devices.empty() && tally.compared == 0 && chosen.front() != &reference_device();
  return tally.failed || nothing_done ? check_failed : fine;
}

}  // namespace

Command verify_verb() {
  auto options = std::make_shared<VerifyOptions>();
  Command verb{.name = "verify", .summary = "Runs problems on every device and compares their bits"};
  verb.option("lines", options->lines, "Problem lines, each one argument", {.type = "LINE"});
  verb.option("--all", options->all, "Every '#: try' line of every operator, forward and backward");
  verb.option("--device", options->devices, "Only this device beside the reference; repeatable", {.type = "NAME"});
  add_threads(verb, options->run.threads, "Threads on CPUs; the bits do not depend on it");
  verb.option("--chunk", options->run.chunk_rows, "Rows handed over at a time; the bits do not depend on it",
              {.type = "ROWS", .whole = at_least(1)});
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
