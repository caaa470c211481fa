// A program's text after each stage of its way to code: what `trireme show` prints.
#pragma once
#include <span>
#include <string>
#include <string_view>

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
  std::string arch;  // the target's default if empty
};

struct ShowStage {
  std::string_view name;
  std::string_view summary;
  bool of_target;  // its text depends on the target
  Result<std::string> (*text)(const Shown& shown);
};

std::span<const ShowStage> show_stages();  // in the order of compilation, "parse" first
Result<const ShowStage*> find_show_stage(std::string_view name);

Result<std::string> show_code(const Shown& shown);  // the target's own text

}  // namespace trireme
