// Groups of columns that lie otherwise than the schedule's stripes, on thread machines: beside the row's own sum, say,
// whose stripes rule 4 cuts, or beside groups of another size.
//
// Such a reduction has a layout of its own. A thread evaluates its terms at other columns than the thread's own, from
// operands that are read again, adds them up in registers and shuffles, and leaves one value a group in scratch.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/config.hpp"
#include "schedule/wrapped_groups.hpp"

namespace trireme {

struct GroupsApart {
  struct Group {
    NodeId id;
    std::int64_t by;
    Config config;          // its own layout
    WrappedGroups wrapped;  // of j % g: how that adds up
    std::int64_t at;        // of a team's scratch, in bytes: a value a group
  };
  std::vector<Group> groups;
  std::int64_t bytes = 0;  // of a team
};

// Of a resolved program, `wrapped` being those that the schedule itself keeps in registers.
GroupsApart groups_apart(const Program& program, const Config& config, const WrappedGroups& wrapped);

// What the terms of groups of up to 256 columns reach: registers and shuffles, a value a group in scratch beside them,
// or scratch themselves.
enum class TermsReach : std::uint8_t { Registers, ValuesInScratch, Scratch };
TermsReach terms_reach(const Program& program, const Config& config);

}  // namespace trireme
