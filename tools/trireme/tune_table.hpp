// The part of `trireme tune` that writes tables of schedules.
#pragma once
#include <cstdint>
#include <string>

#include "devices/device.hpp"
#include "verbs.hpp"

namespace trireme::cli {

struct TuneTableOptions {
  std::string file, where;
  int threads = 1;
  double seconds = 0.01, minutes = 5;  // for a schedule; for all
  std::size_t most = 24;               // schedules of a problem
  std::int64_t megabytes = 128;        // an array
  std::uint64_t seed = 1;
};

Result<int> tune_table(const DeviceEntry& device, const TuneTableOptions& options);

}  // namespace trireme::cli
