// What a device offers to plans, checks and benchmarks: it compiles an expanded program and runs it on host memory.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "layout/array.hpp"
#include "schedule/config.hpp"
#include "trireme/parallel.hpp"

namespace trireme {

struct RunOptions {
  int threads = 1;
  ParallelFor parallel_for = {};  // the host's way to run on them; threads of our own unless given
  std::int64_t chunk_rows = 0;    // rows handed over at a time, rounded up to whole row blocks; 0: all at once
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

class HostExecutable;

// A program compiled for a device. The bits it writes depend on nothing but the problem.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual Status run(const Problem2d& problem, const RunOptions& options) = 0;
  virtual std::string describe() const = 0;
  virtual std::string kernel_hash() const { return {}; }  // of what runs; empty where nothing was compiled
  virtual const HostExecutable* on_host() const { return nullptr; }
  // On memory of the kind the device works on best; the default calls run() on the host's.
  virtual Result<Timing> time(const Problem2d& problem, const TimeOptions& options);
};

// Runs in the caller's memory and changes nothing of its own, so that threads may share it.
class HostExecutable : public Executable {
 public:
  struct MemoryBytes {
    std::int64_t workspace = 0;  // lent for a run; begins at a multiple of 64 bytes
    std::int64_t own = 0;        // likewise; small, and kept beside the arguments of a call
  };
  virtual MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const = 0;
  virtual Status run_in(const Problem2d& problem, const RunOptions& options, std::byte* workspace,
                        std::byte* own) const = 0;

  Status run(const Problem2d& problem, const RunOptions& options) final;  // in memory made for this run
  const HostExecutable* on_host() const final { return this; }
};

constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct DeviceEntry {
  std::string name;
  std::string (*missing)();  // empty, or why the device cannot be used here
  Result<std::unique_ptr<Executable>> (*compile)(const Program& program, const Facts& facts);
};

}  // namespace trireme
