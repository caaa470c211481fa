// How long a schedule takes on a thread machine, about: what candidates are ranked by.
//
// Four things bound a multiprocessor, and the slowest of them counts most: bytes of memory, bytes of the second cache,
// instructions to issue, and the latency of a row from its loads to its stores, which occupancy hides: as many rows are
// under way as registers and shared memory let teams be resident.
#pragma once
#include "schedule/config.hpp"
#include "schedule/shape.hpp"
#include "schedule/work.hpp"

namespace trireme {

// What no machine declares: fitted to schedules timed on an H200 (bench/cost_model).
struct ThreadFigures {
  double issued = 0.77;             // instructions a cycle and scheduler
  double cache_bandwidth = 5.4e12;  // bytes a second: the second cache
  double found_again = 0.59;        // of a row read again: the part that costs what memory costs
  double narrow_segments = 0.24;    // of pieces shorter than a line: what each missing part of it costs
  double sharpness = 3.5;           // of the maximum over what bounds

  // Registers of a thread: some, then for each of its elements, where a later sweep keeps it or only this one has it.
  double registers = 16, kept = 1, passed = 0.5, hoisted = 1.1, summed = 1.9, loaded = 0.26, arithmetic = 2.5;
  double spilled = 43;  // instructions a row for each that is missing

  // Instructions of a warp: for an element of each thread.
  double work = 0.45, again = 0.14, weights = 5, access = 18, odd = 77;
  // For a shuffle, a sweep, and a sweep in a cluster.
  double shuffle = 1.4, sweep = 36, exchange = 140;

  // Microseconds.
  double memory_latency = 0.51, loop_latency = 3.5, sum_latency = 0.16, cluster_latency = 0.25, cluster_growth = 0.13;
  double start_latency = 0.068;  // of a team
  double finished = 3;           // instructions an element: a block's sum joins those before it, and begins again
  double dependent = 2;          // cycles from one instruction of a warp to the next
};

class ThreadCost {
 public:
  ThreadCost(const Program& program, const Machine& machine, const Facts& facts, const ThreadFigures& figures = {});

  // Seconds; infinite where a block does not fit a multiprocessor.
  double operator()(const Config& config) const;
  double registers_had(const Config& config) const;  // by a thread, about

 private:
  double registers(const Config& config) const;  // that a thread has values for
  double most_registers(const Config& config) const;

  double of_tiles(const Config& config) const;

  const Program& program_;
  const Machine& machine_;
  const Facts& facts_;
  const ThreadFigures f_;
  const Shape shape_;
  const std::vector<AxisIndexing> odd_columns_;  // of operands whose columns are divided or wrapped
  const double work_;                            // instructions of an element
  const SweepReuse reuse_;
  const EntrySums entry_sums_;
  const double block_rows_;  // of a block of column sums
};

}  // namespace trireme
