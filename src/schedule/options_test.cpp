// What walks the table of options: the tuner's steps. valid_test.cpp, config_text_test.cpp and schedule_passes_test.cpp
// have validity, text and passes.
#include "schedule/options.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "schedule/candidates.hpp"

namespace trireme {
namespace {

// Of the words that differ from the schedule's; `-word` where one is left out.
std::set<std::string> steps_from(const std::string& schedule) {
  auto words = [](std::string text) {
    std::set<std::string> out;
    for (std::size_t end; !text.empty(); text.erase(0, end + (end < text.size())))
      end = std::min(text.find(' '), text.size()), out.insert(text.substr(0, end));
    return out;
  };
  const Config config = parse_config(schedule).value();
  const std::set<std::string> before = words(print(config));
  std::set<std::string> steps;
  for (const Config& each : neighbours(config)) {
    const std::set<std::string> after = words(print(each));
    std::string step;
    for (const std::string& word : after)
      if (!before.contains(word)) step += word;
    for (const std::string& word : before)
      if (!after.contains(word) && step.empty()) step = "-" + word;
    EXPECT_TRUE(steps.insert(step).second) << step;
  }
  return steps;
}

// Others may join them.
TEST(Options, ATunersSteps) {
  auto expect = [](const char* schedule, std::initializer_list<const char*> steps,
                   std::initializer_list<const char*> none) {
    const std::set<std::string> found = steps_from(schedule);
    for (const char* step : steps) EXPECT_TRUE(found.contains(step)) << step << " from " << schedule;
    for (const char* step : none) EXPECT_FALSE(found.contains(step)) << step << " from " << schedule;
  };
  expect("threads lanes=32 vector=4 groups=32 columns=100000 streaming",
         {"-streaming", "resident=1", "resident=2", "resident=3", "resident=4", "resident=6", "resident=8"},
         {"hoist", "reload", "ring=1", "rows=2", "prefetch"});
  expect("threads lanes=32 vector=4 rows=4 columns=1000 stripes=4 ring=8 hoist",
         {"rows=8", "rows=16", "rows=2", "-hoist", "reload", "streaming", "resident=8"}, {"stage", "ring=9", "ring=7"});
  expect("simd lanes=8 unroll=4 prefetch", {"streaming"}, {"hoist", "reload", "resident=1", "rows=2"});
}

// A step goes where the option's kind of schedule is, and says what the option can hold.
TEST(Options, StepsStayInTheTable) {
  for (const char* schedule : {"simd lanes=8 rows=32 across", "simd lanes=8 columns=100 stripes=1 rows=2",
                               "threads lanes=32 columns=100 tile=8 rows=1048576",
                               "threads lanes=32 columns=100 stripes=1 rows=1048576 ring=8"})
    for (const Config& each : neighbours(parse_config(schedule).value()))
      for (const Option& option : schedule_options) {
        if (!option.said(each)) continue;
        EXPECT_TRUE(option.kinds & kind_of(each)) << print(each);
        EXPECT_LE(option.number ? each.*option.number : 0, option.most) << print(each);
      }
}

}  // namespace
}  // namespace trireme
