// The only file that sees nlohmann's JSON, whose headers take seconds to compile.
#include <ctime>
#include <nlohmann/json.hpp>

#include "bench_report.hpp"
#include "ir/contract.hpp"
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

Json json_of(const GradientCheck& check) {
  const bool said = check.skipped.empty();
  return {
      {"derivative", said ? Json(check.derivative) : Json()}, {"difference", said ? Json(check.difference) : Json()},
      {"error", said ? Json(check.error()) : Json()},         {"bound", said ? Json(check.bound) : Json()},
      {"passed", said ? Json(check.fine()) : Json()},         {"skipped", text_or_null(check.skipped)}};
}

Json json_of(const ProblemReport& problem) {
  Json oracle = Json::array(), devices = Json::array();
  for (const OracleFinding& each : problem.oracle) oracle.push_back(json_of(each));
  for (const DeviceOutcome& each : problem.devices) devices.push_back(json_of(each));
  return {{"problem", problem.problem},
          {"digest", problem.digest},
          {"oracle", std::move(oracle)},
          {"without_oracle", text_or_null(problem.without_oracle)},
          {"differences", problem.differences ? json_of(*problem.differences) : Json()},
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

Json json_of(const drift::ElementDifferences& elements) {
  auto whole_or_null = [](const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(); };
  return {{"row", elements.row},
          {"column", elements.column},
          {"a", elements.a},
          {"b", elements.b},
          {"ulps", whole_or_null(elements.ulps)},
          {"count", elements.count},
          {"most_ulps", whole_or_null(elements.most_ulps)}};
}

Json json_of(const std::vector<drift::ArrayDifference>& arrays) {
  Json list = Json::array();
  for (const drift::ArrayDifference& each : arrays) {
    Json from = Json::array();
    for (const drift::Source& source : each.from) from.push_back(source.event ? Json(source.event->label()) : Json());
    list.push_back({{"name", each.name},
                    {"type", each.a ? Json(each.a->type) : Json()},
                    {"shape", each.a ? Json(each.a->shape) : Json::array()},
                    {"reason", text_or_null(each.reason)},
                    {"rows", {each.first_row, each.last_row}},
                    {"blocks", each.blocks},
                    {"of_blocks", each.of_blocks},
                    {"elements", each.elements ? json_of(*each.elements) : Json()},
                    {"from", std::move(from)}});
  }
  return list;
}

}  // namespace

std::string as_json(const DriftReport& report) {
  const drift::CompareReport& compared = report.compared;
  Json runs = Json::array(), partings = Json::array();
  for (const int side : {0, 1})
    runs.push_back({{"folder", report.runs[side].folder},
                    {"events", compared.events[side]},
                    {"looked_at", compared.looked_at[side]},
                    {"ended", report.runs[side].ended},
                    {"failed", text_or_null(report.runs[side].failure)}});
  for (const drift::Parting& each : compared.partings)
    partings.push_back({{"kind", drift::name(each.a->kind)},
                        {"phase", text_or_null(each.a->phase)},
                        {"path", each.a->path},
                        {"name", each.a->name},
                        {"events", {each.a->number, each.b->number}},
                        {"calls", {each.a->call, each.b->call}},
                        {"blame", drift::name(each.blame)},
                        {"arguments", {each.a->arguments, each.b->arguments}},
                        {"outputs", json_of(each.outputs)},
                        {"inputs", json_of(each.inputs)},
                        {"unknown_inputs", each.unknown_inputs}});
  return text_of({{"same", report.same()},
                  {"runs", std::move(runs)},
                  {"aligned", compared.aligned},
                  {"alike", compared.same},
                  {"different", compared.different},
                  {"unknown", compared.unknown},
                  {"by_operators", compared.by_operators},
                  {"partings", std::move(partings)}});
}

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
  return text_of({{"contract", contract::version},
                  {"problems", std::move(problems)},
                  {"without_backward", report.without_backward},
                  {"comparisons", report.compared},
                  {"failed", report.failed}});
}

std::string as_json(const DoctorReport& report) {
  Json devices = Json::array();
  for (const DoctorReport::Part& each : report.devices) {
    devices.push_back(json_of(each));
    devices.back()["about_ms"] = each.about_ms;
  }
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
