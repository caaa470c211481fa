// What a device offers to plans, checks and benchmarks: it compiles an expanded program and runs it on host memory.
#pragma once
#include <functional>
#include <memory>
#include <optional>
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
  std::vector<double> host;  // where `runs` count the device's time alone: what a run takes of the host's
};

class DirectExecutable;

// A program compiled for a device. The bits it writes depend on nothing but the problem.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual Status run(const Problem2d& problem, const RunOptions& options) = 0;
  virtual std::string describe() const = 0;
  virtual std::string kernel_hash() const { return {}; }  // of what runs; empty where nothing was compiled
  struct Identity {
    std::string arch, isa, config;  // empty where nothing was compiled
  };
  virtual Identity identity() const { return {}; }
  virtual const DirectExecutable* direct() const { return nullptr; }
  // A problem's arrays where the device works on them; by default where they are. Executables of one device share it.
  struct Placed {
    Problem2d problem;
    std::shared_ptr<const void> memory = {};
  };
  virtual Result<Placed> place(const Problem2d& problem) const { return Placed{problem}; }
  virtual Result<Timing> time(const Placed& placed, const TimeOptions& options);
};

// What a run is lent beside its arrays.
struct Lent {
  std::byte* workspace = nullptr;  // in the device's memory; begins at a multiple of 64 bytes
  std::byte* own = nullptr;        // in the host's, likewise; small, and kept beside the arguments of a call
  void* stream = nullptr;          // of a device that has streams: it is the order of what runs, and nobody waits
};

// Runs where the caller's arrays lie, in the device's own memory, and changes nothing of its own, so that threads may
// share it.
class DirectExecutable : public Executable {
 public:
  struct MemoryBytes {
    std::int64_t workspace = 0, own = 0;
  };
  virtual MemoryBytes memory_bytes(std::int64_t rows, std::int64_t columns, const RunOptions& options) const = 0;
  virtual Status run_in(const Problem2d& problem, const RunOptions& options, const Lent& lent) const = 0;
  // Threads of the host's that run_in() shares the rows out to.
  virtual int workers(std::int64_t, std::int64_t, const RunOptions&) const { return 1; }

  virtual bool has_streams() const { return false; }
  virtual Status prepare() const { return Done{}; }  // whatever run_in() might still have to make
  virtual Status check_memory(const void*) const { return Done{}; }
  virtual Result<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) const = 0;

  const DirectExecutable* direct() const final { return this; }
};

// Its device's memory is the host's.
class HostExecutable : public DirectExecutable {
 public:
  Status run(const Problem2d& problem, const RunOptions& options) final;  // in memory made for this run
  Result<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) const final;
};

constexpr std::int64_t line_bytes = 64;
constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

using Compile = std::function<Result<std::unique_ptr<Executable>>(const Program& program, const Facts& facts)>;

// What a device is to those who walk the table of devices (plan/devices.hpp).
struct DeviceEntry {
  std::string name;                      // of one, or FAMILY:WHICH
  std::function<std::string()> missing;  // empty, or why the device cannot be used here
  Compile compile;
  std::function<Result<Machine>()> machine = {};  // what its configs are tuned by; none: there are none to try
  std::string_view target = {}, arch = {};        // what it loads, by the table of targets; empty: kernels as they are
  std::string_view needs = {};                    // for a person who has not got it
  bool threads = false;                           // runs on several of the host's
  bool accelerator = false;                       // a machine beside the host's processor
  bool timed = false;                             // its speed is of interest; the others are there for their bits
  std::int64_t most_elements = 0;                 // beyond them a problem takes too long to be tried unasked; 0: never
  // About what it takes to compile and run a small program, in milliseconds: tests of thousands thin the slow ones out.
  int (*about_ms)() = [] { return 1; };
  // Further ones of the family, by what stands behind the colon: cuda:1.
  std::optional<DeviceEntry> (*further)(std::string_view which) = nullptr;
  std::string (*features)() = nullptr;  // of the host's processor, that its code uses, by name
};

}  // namespace trireme
