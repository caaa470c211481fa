// The decisions of a schedule as passes, in the order in which they build on each other. The kernel after a pass is the
// one that the decisions up to it make, those to come being left out: it is complete, and its bits are the same.
#pragma once
#include <span>
#include <string_view>

#include "schedule/config.hpp"

namespace trireme {

struct SchedulePass {
  std::string_view name, summary;
};

std::span<const SchedulePass> schedule_passes();  // "place" first; options.hpp has them

// What the passes up to and including `last`, one of these, decide of `whole`.
Config config_after(const Config& whole, const SchedulePass& last);

}  // namespace trireme
