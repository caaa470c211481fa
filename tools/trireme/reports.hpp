// What verbs find out, as data: each verb prints it as text, json.cpp as JSON. docs/json.md describes the fields.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/cache/disk_cache.hpp"
#include "drift/compare.hpp"
#include "measure.hpp"
#include "plan/difference.hpp"
#include "plan/gradient_check.hpp"
#include "reference/oracle.hpp"
#include "trireme/program.hpp"

namespace trireme::cli {

struct OperatorReport {
  std::string name, purpose, signature, program;
  std::vector<RowProgram::Parameter> parameters;
  std::string backward;  // the derived program; empty where there is no gradient
};

// How a device fared with a problem.
enum class Outcome : std::uint8_t { Same, Different, Error, Missing, Skipped, Unsupported };

struct DeviceOutcome {
  std::string device;
  Outcome outcome;
  std::string reason;  // of all but Same and Different
  std::string digest;  // where it ran
  std::optional<Difference> first;
  std::string rerun;  // the command that shows a failure again
};

struct OracleFinding {
  std::string element;  // the one that lies furthest from exact mathematics
  LargestError largest;
};

struct ProblemReport {
  std::string problem, digest;  // of the reference
  std::vector<OracleFinding> oracle;
  std::string without_oracle;                // why it does not judge
  std::optional<GradientCheck> differences;  // of a backward
  std::vector<DeviceOutcome> devices;
};

struct VerifyReport {
  std::vector<ProblemReport> problems;
  std::vector<std::string> without_backward;  // of --all: why an operator has none
  int compared = 0, failed = 0;
};

struct DoctorReport {
  struct Part {
    std::string name;
    std::string_view state;  // "ready", "missing", "FAILED"; of the cache also "reads", "off"
    std::string what, advice;
    int about_ms = 0;  // of a device: DeviceEntry's
  };
  struct Setting {  // of the environment
    std::string name, value;
    bool known = true;
    std::string wrong = {};  // why its value is not taken
    std::string_view state() const { return !known ? "unknown" : wrong.empty() ? "" : "wrong"; }
  };
  std::string version, platform, processor, features, cpu_device;
  int contract = 0;
  std::optional<int> threads;
  std::size_t operators = 0;
  std::vector<Part> devices;
  Part nvrtc, cache;
  std::vector<Setting> settings;
};

struct CacheReport {
  std::string folder, off_reason;  // one of them is empty
  bool writable = false;
  std::vector<DiskCache::Listed> entries;
  std::optional<std::int64_t> removed;  // by clear
  std::int64_t bytes() const;
  std::int64_t broken() const;
};

struct DriftReport {
  struct Run {
    std::string folder, failure;
    bool ended = true;
  } runs[2];
  drift::CompareReport compared;
  bool same() const { return !compared.different && runs[0].ended && runs[1].ended; }
};

std::string as_json(const std::vector<OperatorReport>& operators);
std::string as_json(const VerifyReport& report);
std::string as_json(const DoctorReport& report);
std::string as_json(const CacheReport& report);
std::string as_json(const std::vector<Measurement>& all);
std::string as_json(const DriftReport& report);

}  // namespace trireme::cli
