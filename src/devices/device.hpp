// What a device offers to plans, checks and benchmarks: it compiles an expanded program and runs it on host memory.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "layout/array.hpp"
#include "schedule/config.hpp"

namespace trireme {

struct RunOptions {
  int threads = 1;
  std::int64_t chunk_rows = 0;  // rows handed over at a time, rounded up to whole row blocks; 0: all at once
};

struct TimeOptions {
  int threads = 1;
  double seconds = 1;                    // to spend, but at least three rounds are made
  std::int64_t bytes = 0;                // a run moves: every array read or written once
  std::function<void(double)> progress;  // told which part of the time is spent, 0 to 1
};

// Runs and copies in turn, so that both see the same machine. A copy reads and writes half of `bytes`.
struct Timing {
  struct Copy {
    std::string name;
    std::vector<double> seconds;
  };
  std::vector<double> runs;  // seconds
  std::vector<Copy> copies;  // the ways of copying that were tried
};

// A program compiled for a device. The bits it writes depend on nothing but the problem.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual Status run(const Problem2d& problem, const RunOptions& options) = 0;
  virtual std::string describe() const = 0;
  // On memory of the kind the device works on best; the default calls run() on the host's.
  virtual Result<Timing> time(const Problem2d& problem, const TimeOptions& options);
};

struct DeviceEntry {
  std::string name;
  std::string (*missing)();  // empty, or why the device cannot be used here
  Result<std::unique_ptr<Executable>> (*compile)(const Program& program, const Facts& facts);
};

}  // namespace trireme
