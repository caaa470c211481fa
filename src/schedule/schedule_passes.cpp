#include "schedule/schedule_passes.hpp"

namespace trireme {
namespace {

// Which columns are lanes, chunks, stripes and groups of lanes, and which rows are whose. Nothing outlasts a sweep yet.
void place(Config& config, const Config& whole) {
  config = whole;
  config.reload = whole.stripes > 0;
  config.hoist = config.stage = config.streaming = config.prefetch = config.overlap = false;
  config.entries = false;
  config.ring = 0;
}

constexpr SchedulePass passes[] = {
    {"place", "columns dealt out to lanes, chunks and stripes, rows to teams", place},
    {"keep", "elements of unrolled stripes stay in registers from sweep to sweep",
     [](Config& config, const Config& whole) { config.reload = whole.reload; }},
    {"hoist", "values per column are loaded before the first row",
     [](Config& config, const Config& whole) { config.hoist = whole.hoist; }},
    {"entries", "sums over rows i / d: a team adds up the blocks of an entry in registers",
     [](Config& config, const Config& whole) { config.entries = whole.entries; }},
    {"ring", "rows to come are copied to scratch",
     [](Config& config, const Config& whole) { config.ring = whole.ring; }},
    {"stage", "values per column are copied to scratch",
     [](Config& config, const Config& whole) { config.stage = whole.stage; }},
    {"prefetch", "the next row's lines are fetched",
     [](Config& config, const Config& whole) { config.prefetch = whole.prefetch; }},
    {"stream", "results bypass the caches",
     [](Config& config, const Config& whole) { config.streaming = whole.streaming; }},
    {"overlap", "a row's last sweep goes along with the next row's",
     [](Config& config, const Config& whole) { config.overlap = whole.overlap; }},
};

}  // namespace

std::span<const SchedulePass> schedule_passes() { return passes; }

Config config_after(const Config& whole, const SchedulePass& last) {
  Config config;
  for (const SchedulePass& pass : passes) {
    pass.decide(config, whole);
    if (&pass == &last) break;
  }
  return config;
}

}  // namespace trireme
