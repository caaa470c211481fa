// The only file that sees nlohmann's JSON, whose headers take seconds to compile.
#include <ctime>
#include <nlohmann/json.hpp>

#include "bench_report.hpp"
#include "reports.hpp"

namespace trireme::cli {
namespace {

using Json = nlohmann::ordered_json;

// Names of files need not be UTF-8; numbers that are not finite become null.
std::string text_of(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

const char* name_of(RowProgram::Kind kind) {
  switch (kind) {
    case RowProgram::Kind::Operand: return "operand";
    case RowProgram::Kind::Constant: return "constant";
    case RowProgram::Kind::Result: return "result";
  }
  return "";
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Same: return "same";
    case Outcome::Different: return "different";
    case Outcome::Error: return "error";
    case Outcome::Missing: return "missing";
    case Outcome::Skipped: return "skipped";
    case Outcome::Unsupported: return "unsupported";
  }
  return "";
}

Json json_of(const RowProgram::Parameter& parameter) {
  return {{"name", parameter.name},
          {"kind", name_of(parameter.kind)},
          {"spread", text_or_null(parameter.spread)},
          {"optional", parameter.optional},
          {"default", parameter.fallback ? Json(*parameter.fallback) : Json()}};
}

Json json_of(const DeviceOutcome& device) {
  return {{"device", device.device},
          {"outcome", name_of(device.outcome)},
          {"digest", text_or_null(device.digest)},
          {"reason", text_or_null(device.reason)},
          {"element", device.first ? Json(device.first->element) : Json()},
          {"got", device.first ? Json(device.first->got) : Json()},
          {"want", device.first ? Json(device.first->want) : Json()},
          {"rerun", text_or_null(device.rerun)}};
}

Json json_of(const OracleFinding& finding) {
  const LargestError& largest = finding.largest;
  return {{"result", largest.result},     {"element", finding.element},
          {"got", largest.got},           {"want", static_cast<double>(largest.want)},
          {"error", largest.error},       {"bound", largest.tolerance},
          {"elements", largest.elements}, {"outside_bound", largest.wrong},
          {"not_judged", largest.unknown}};
}

Json json_of(const ProblemReport& problem) {
  Json oracle = Json::array(), devices = Json::array();
  for (const OracleFinding& each : problem.oracle) oracle.push_back(json_of(each));
  for (const DeviceOutcome& each : problem.devices) devices.push_back(json_of(each));
  return {{"problem", problem.problem},
          {"digest", problem.digest},
          {"oracle", std::move(oracle)},
          {"without_oracle", text_or_null(problem.without_oracle)},
          {"devices", std::move(devices)}};
}

Json json_of(const DoctorReport::Part& part) {
  return {{"name", part.name},
          {"state", part.state == "FAILED" ? "failed" : part.state},
          {"what", part.what},
          {"advice", text_or_null(part.advice)}};
}

// In UTC: 2025-01-31T12:00:00Z.
std::string time_text(std::int64_t nanoseconds) {
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm parts;
  char text[32] = "";
  if (gmtime_r(&seconds, &parts)) std::strftime(text, sizeof text, "%FT%TZ", &parts);
  return text;
}

Json times(const Measurement& measured, const std::vector<double>& seconds) {
  return {{"best_seconds", best(seconds)},
          {"median_seconds", median(seconds)},
          {"count", seconds.size()},
          {"gigabytes_per_second", gigabytes_per_second(measured, best(seconds))}};
}

}  // namespace

std::string as_json(const std::vector<OperatorReport>& operators) {
  Json list = Json::array();
  for (const OperatorReport& each : operators) {
    Json parameters = Json::array();
    for (const RowProgram::Parameter& parameter : each.parameters) parameters.push_back(json_of(parameter));
    list.push_back({{"name", each.name},
                    {"purpose", each.purpose},
                    {"signature", each.signature},
                    {"parameters", std::move(parameters)},
                    {"program", each.program},
                    {"backward", text_or_null(each.backward)}});
  }
  return text_of(list);
}

std::string as_json(const VerifyReport& report) {
  Json problems = Json::array();
  for (const ProblemReport& each : report.problems) problems.push_back(json_of(each));
  return text_of({{"problems", std::move(problems)},
                  {"without_backward", report.without_backward},
                  {"comparisons", report.compared},
                  {"failed", report.failed}});
}

std::string as_json(const DoctorReport& report) {
  Json devices = Json::array();
  for (const DoctorReport::Part& each : report.devices) devices.push_back(json_of(each));
  Json settings = Json::array();
  for (const DoctorReport::Setting& each : report.settings)
    settings.push_back({{"name", each.name},
                        {"value", each.value},
                        {"state", each.state().empty() ? "right" : each.state()},
                        {"reason", text_or_null(each.wrong)}});
  return text_of({{"version", report.version},
                  {"contract", report.contract},
                  {"operators", report.operators},
                  {"platform", report.platform},
                  {"processor", report.processor},
                  {"features", text_or_null(report.features)},
                  {"threads", report.threads ? Json(*report.threads) : Json()},
                  {"devices", std::move(devices)},
                  {"cpu_runs_on", text_or_null(report.cpu_device)},
                  {"nvrtc", json_of(report.nvrtc)},
                  {"cache", json_of(report.cache)},
                  {"settings", std::move(settings)}});
}

std::string as_json(const CacheReport& report) {
  Json entries = Json::array();
  for (const DiskCache::Listed& each : report.entries)
    entries.push_back({{"name", each.file.name},
                       {"title", text_or_null(each.title)},
                       {"bytes", each.file.bytes},
                       {"used", time_text(each.file.used_ns)},
                       {"broken", text_or_null(each.broken)}});
  return text_of({{"folder", text_or_null(report.folder)},
                  {"off", text_or_null(report.off_reason)},
                  {"writable", report.writable},
                  {"entries", std::move(entries)},
                  {"bytes", report.bytes()},
                  {"broken", report.broken()},
                  {"removed", report.removed ? Json(*report.removed) : Json()}});
}

std::string as_json(const std::vector<Measurement>& all) {
  Json list = Json::array();
  for (const Measurement& measured : all) {
    Json json = {{"problem", measured.line},
                 {"device", measured.device},
                 {"how", measured.how},
                 {"threads", measured.threads},
                 {"bytes", measured.bytes},
                 {"instructions_per_byte", measured.instructions_per_byte},
                 {"checked_rows", measured.checked_rows},
                 {"compile_seconds", measured.compile_seconds},
                 {"run", times(measured, measured.timing.runs)},
                 {"share_of_copy", share_of_copy(measured)},
                 {"command", measured.command}};
    if (measured.error)
      json["largest_error"] = {{"error", measured.error->error}, {"of_bound", measured.error->of_bound}};
    for (const Timing::Copy& copy : measured.timing.copies) json["copies"][copy.name] = times(measured, copy.seconds);
    if (!measured.timing.host.empty())
      json["host"] = {{"best_seconds", best(measured.timing.host)}, {"median_seconds", median(measured.timing.host)}};
    list.push_back(std::move(json));
  }
  return text_of(list);
}

}  // namespace trireme::cli
