#include "bench_report.hpp"

#include <fmt/format.h>

namespace trireme::cli {
namespace {

// The error beside the time: what was measured, and how much of it the contract's roundings allow.
std::string error_text(const Measurement& measured) {
  if (!measured.error) return "no oracle for it";
  return fmt::format("largest error {:.1e}, {:.2f} of its bound", measured.error->error, measured.error->of_bound);
}

}  // namespace

double gigabytes_per_second(const Measurement& measured, double seconds) {
  return static_cast<double>(measured.bytes) / seconds * 1e-9;
}

double share_of_copy(const Measurement& measured) {
  return best(fastest_copy(measured.timing).seconds) / best(measured.timing.runs);
}

std::string table_head(const Measurement& measured) {
  return fmt::format("{}\n{:30} {:>10} {:>10} {:>8}\n", measured.line, "", "best ms", "median ms", "GB/s");
}

std::string table_rows(const Measurement& measured) {
  std::string text;
  auto row = [&](const std::string& device, const std::string& what, const std::vector<double>& seconds,
                 const std::string& remark) {
    text += fmt::format("  {:<12} {:<15} {:>10.4f} {:>10.4f} {:>8.1f}   {}\n", device, what, best(seconds) * 1e3,
                        median(seconds) * 1e3, gigabytes_per_second(measured, best(seconds)), remark);
  };
  row(measured.device, "run", measured.timing.runs,
      fmt::format("{:.2f} of the copy; {}", share_of_copy(measured), error_text(measured)));
  for (const Timing::Copy& copy : measured.timing.copies) row("", copy.name, copy.seconds, "");
  if (!measured.timing.host.empty())
    text += fmt::format("  {:<12} {:<15} {:>10.4f} {:>10.4f}            of the host's time, apart\n", "", "launch",
                        best(measured.timing.host) * 1e3, median(measured.timing.host) * 1e3);
  return text + fmt::format(
                    "  {0:<12} {1}; compiled in {2:.1f} ms; best of {3}; first {4} rows have the reference's bits\n"
                    "  {0:<12} {5}\n",
                    "", measured.how, measured.compile_seconds * 1e3, measured.timing.runs.size(),
                    measured.checked_rows, measured.command);
}

std::string as_csv(const std::vector<Measurement>& all) {
  std::string text =
      "problem,device,threads,best_seconds,median_seconds,gigabytes_per_second,copy,copy_best_seconds,share_of_copy,"
      "largest_error,error_of_bound,instructions_per_byte,command\n";
  for (const Measurement& measured : all) {
    const Timing::Copy& copy = fastest_copy(measured.timing);
    std::string quoted = measured.command;  // the only field with quotes
    for (std::size_t at = 0; (at = quoted.find('"', at)) != quoted.npos; at += 2) quoted.insert(at, 1, '"');
    text += fmt::format(
        "{},{},{},{:.6e},{:.6e},{:.2f},{},{:.6e},{:.4f},{},{:.3f},\"{}\"\n", measured.line, measured.device,
        measured.threads, best(measured.timing.runs), median(measured.timing.runs),
        gigabytes_per_second(measured, best(measured.timing.runs)), copy.name, best(copy.seconds),
        share_of_copy(measured),
        measured.error ? fmt::format("{:.3e},{:.4f}", measured.error->error, measured.error->of_bound) : ",",
        measured.instructions_per_byte, quoted);
  }
  return text;
}

}  // namespace trireme::cli
