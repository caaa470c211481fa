// One measurement of `trireme bench`: a problem on a device, its results checked, beside copies of the same bytes.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "devices/device.hpp"
#include "plan/check.hpp"
#include "plan/difference.hpp"

namespace trireme::cli {

// The element that lies furthest from exact mathematics, of the first rows.
struct ErrorSeen {
  double error = 0;     // absolute
  double of_bound = 0;  // in parts of what the contract's roundings may cost
};

struct Measurement {
  std::string line, program;
  bool backward = false;
  std::string device, how;  // how: the executable's own words
  int threads = 1;
  std::string command;            // measures it again
  std::size_t element_bytes = 4;  // of the first element operand
  double instructions_per_byte = 0;
  std::optional<ErrorSeen> error;  // nothing where the oracle cannot judge
  double compile_seconds = 0;
  std::int64_t bytes = 0;  // moved by a run: each array that is used, once
  std::int64_t checked_rows = 0;
  std::optional<Difference> difference;  // found by the check
  Timing timing;
};

struct MeasureOptions {
  int threads = 1;
  double seconds = 1;
  std::function<void(double)> progress;
};

// The results are compared with the reference's first: the whole problem if it is small, else its first rows, since a
// row's results do not depend on others.
Result<Measurement> measure(const Problem& problem, const DeviceEntry& device, const MeasureOptions& options);

// Billions of instructions a second that a program of nothing else reaches on a device.
Result<double> arithmetic_roof(const DeviceEntry& device, int threads);

std::int64_t bytes_moved(const Prepared& prepared);  // by a run: every array that is used, once
double best(const std::vector<double>& seconds);
double median(std::vector<double> seconds);
const Timing::Copy& fastest_copy(const Timing& timing);

}  // namespace trireme::cli
