// Reductions over every g-th column (j % g) in the registers of a thread machine.
//
// Where a schedule's stripes are whole periods of g columns, a thread has columns of the same few remainders
// throughout. Counting a group's columns by k = j / g, the bits of k are, from low to high: those of a place in the
// stripe, the stripes that groups of lanes take in turn, a thread's own stripes, and the remaining groups of lanes.
// Rule 4 adds up bits 7 to 0 of k, highest first, then the others, lowest first. So a thread adds up its own stripes;
// what is left, one number a place of a stripe, passes once through scratch where several groups of lanes share the
// row; then places are added up by shuffles.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/config.hpp"

namespace trireme {

struct WrappedGroups {
  struct Group {
    NodeId id;
    std::int64_t period;  // places of a stripe after which remainders come again: a power of two
    int runs;             // of 256 columns of a group, which follow each other in a thread's stripes
    std::int64_t at;      // scratch, in bytes: [chunk of a stripe][group of lanes][place in the chunk]
  };
  int interleaved = 1;  // groups of lanes that take stripes in turn; others take theirs one after the other
  std::vector<Group> groups;
  std::int64_t bytes = 0;
};

// Of a resolved program: those that a chunk does not hold (groups_in_chunks), and whose values nobody wants at other
// columns.
WrappedGroups wrapped_groups(const Program& program, const Config& config);

bool is_rotated(const Program& program, NodeId group);

// One of them alone, if the schedule's stripes hold it.
std::optional<WrappedGroups> wrapped_group(NodeId id, std::int64_t by, const Config& config, Type compute);

}  // namespace trireme
