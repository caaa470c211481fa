// What a device offers to plans, checks and benchmarks: it compiles an expanded program and runs it on host memory.
#pragma once
#include <memory>
#include <string>

#include "ir/program.hpp"
#include "layout/array.hpp"
#include "schedule/config.hpp"

namespace trireme {

struct RunOptions {
  int threads = 1;
  std::int64_t chunk_rows = 0;  // rows handed over at a time, rounded up to whole row blocks; 0: all at once
};

// A program compiled for a device. The bits it writes depend on nothing but the problem.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual Status run(const Problem2d& problem, const RunOptions& options) = 0;
  virtual std::string describe() const = 0;
};

struct DeviceEntry {
  std::string name;
  std::string (*missing)();  // empty, or why the device cannot be used here
  Result<std::unique_ptr<Executable>> (*compile)(const Program& program, const Facts& facts);
};

}  // namespace trireme
