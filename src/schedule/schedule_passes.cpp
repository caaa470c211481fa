#include "schedule/schedule_passes.hpp"

#include <algorithm>
#include <iterator>

#include "schedule/options.hpp"

namespace trireme {
namespace {

constexpr const SchedulePass* pass_of(const Option& option) {
  return std::find_if(std::begin(pass_table), std::end(pass_table),
                      [&](const SchedulePass& each) { return each.name == option.pass; });
}
static_assert(std::none_of(std::begin(schedule_options), std::end(schedule_options),
                           [](const Option& each) { return pass_of(each) == std::end(pass_table); }));

}  // namespace

std::span<const SchedulePass> schedule_passes() { return pass_table; }

Config config_after(const Config& whole, const SchedulePass& last) {
  Config config = whole;
  for (const Option& each : schedule_options)
    if (pass_of(each) > &last) each.undecide(config);
  return config;
}

}  // namespace trireme
