// One measurement of `trireme bench`: a problem on a device, its results checked, beside copies of the same bytes.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "devices/device.hpp"
#include "plan/check.hpp"
#include "plan/difference.hpp"

namespace trireme::cli {

struct Measurement {
  std::string device, how;  // how: the executable's own words
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

double best(const std::vector<double>& seconds);
double median(std::vector<double> seconds);
const Timing::Copy& fastest_copy(const Timing& timing);

}  // namespace trireme::cli
