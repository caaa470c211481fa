// A program's text after each stage of its way to code: what `trireme show` prints.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/check.hpp"
#include "schedule/config.hpp"
#include "targets/targets.hpp"

namespace trireme {

// The program, and what an author might write better as comments below it.
std::string show_program(const Program& program);

struct Shown {
  const Prepared& prepared;
  const Facts& facts;
  const Target& target;
  std::string arch;                  // the target's default if empty
  const Lowered* lowered = nullptr;  // for that architecture, where it is known
};

struct ShowStage {
  std::string_view name;
  std::string_view summary;
  bool of_target;  // its text depends on the target
  Result<std::string> (*text)(const Shown& shown);
};

std::span<const ShowStage> show_stages();  // in the order of compilation, "parse" first

// What `--after` knows: the stages and, before the last one, the passes of the schedule (schedule/schedule_passes.hpp),
// whose texts are the kernels that its decisions up to there make. Name and summary of each.
std::vector<std::pair<std::string_view, std::string_view>> show_points();
struct ShowPoint {
  bool of_target;
  std::function<Result<std::string>(const Shown&)> text;
};
Result<ShowPoint> find_show_point(std::string_view name);

Result<std::string> show_code(const Shown& shown);  // the target's own text

}  // namespace trireme
