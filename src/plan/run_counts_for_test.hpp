// What a run must not do, counted over the whole test program (run_counts_test.cpp).
#pragma once
#include <string>

namespace trireme {

struct Counts {
  long allocated, locked, compared;
};
Counts counts_now();
inline std::string print(const Counts& counts) {
  return std::to_string(counts.allocated) + " allocations, " + std::to_string(counts.locked) + " locks, " +
         std::to_string(counts.compared) + " comparisons of names";
}

}  // namespace trireme
