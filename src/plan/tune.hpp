// Searches the config of one problem on one device, and remembers the winner: plans for the same program, types,
// columns and about as many rows then take it. The bits are the same for every config.
#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "devices/device.hpp"

namespace trireme {

struct TuneOptions {
  int threads = 1;
  double seconds = 0.05;                 // to time each config
  std::size_t most = 48;                 // configs to try, those that the cost model ranks first
  std::int64_t bytes = 0;                // a run moves
  bool by_model = false;                 // what is chosen without a search is the cost model's, not a table's
  std::function<void(double)> progress;  // told which part is done, 0 to 1
};

struct Tried {
  Config config;
  double seconds =
      std::numeric_limits<double>::infinity();  // of the best run; where the device refuses the config, too
  double copy_seconds = std::numeric_limits<double>::infinity();  // of copies of the same bytes beside it
};

// The config that is chosen without a search first, then the others in order of time.
Result<std::vector<Tried>> try_configs(const DeviceEntry& device, const Program& program, const Problem2d& problem,
                                       const TuneOptions& options);

// In the kernel cache. An error says why nothing can be remembered.
Status remember_config(const DeviceEntry& device, const Program& program, const Facts& facts, const Config& config);
std::optional<Config> remembered_config(const DeviceEntry& device, const Program& program, const Facts& facts);

}  // namespace trireme
