#include "program_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "devices/arguments.hpp"
#include "sources.hpp"
#include "trireme/program.hpp"

namespace trireme::cli {

std::vector<std::string> type_words() {
  std::vector<std::string> words;
  for (const TypeFacts& each : type_facts) words.emplace_back(each.name);
  return words;
}

std::optional<std::set<std::string>> names_listed(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::set<std::string> names;
  while (true) {
    const std::size_t comma = text.find(',');
    names.emplace(text.substr(0, comma));
    if (comma == text.npos) return names;
    text.remove_prefix(comma + 1);
  }
}

void add_program_options(Command& verb, ProgramOptions& options) {
  verb.option("program", options.program, "An operator ('trireme list' names them), or the path of a .row file",
              {.type = "OP|FILE", .required = true, .words = RowProgram::names});
  verb.option("--backward", options.backward, "The derived backward instead of the program itself");
  verb.option("--gradients", options.gradients, gradients_help, {.type = "NAMES"});
  verb.option("--cols", options.columns, "Columns of a row", {.type = "N", .show_default = true, .whole = at_least(1)});
  verb.option("--rows", options.rows, "Rows the schedule may count on; results do not depend on it",
              {.type = "N", .show_default = true, .whole = at_least(0)});
  verb.option("--type", options.types, "Storage type of an operand or result, f32 unless said; repeatable",
              {.type = "NAME=TYPE", .words = type_words});
  verb.option("--set", options.constants, "A constant's value; repeatable", {.type = "NAME=NUMBER"});
  verb.option("--absent", options.absent, "An operand that takes its default, or a result not stored; repeatable",
              {.type = "NAME"});
  verb.option("--config", options.config,
              "The schedule to take instead of the chosen one, as --after lower and 'trireme tune' print it; it "
              "changes speed, never bits",
              {.type = "TEXT"});
}

Result<BoundProgram> bind_program(const ProgramOptions& options) {
  // Without rows there would be no strides between them, and nothing to be said of where they begin.
  std::string line = fmt::format("{} {}x{}", options.program, std::max<std::int64_t>(options.rows, 1), options.columns);
  std::map<std::string_view, std::string_view> types_of_absent;  // x=none:bf16
  for (const std::string& each : options.types) {
    const std::string_view name = std::string_view(each).substr(0, each.find('='));
    if (std::find(options.absent.begin(), options.absent.end(), name) == options.absent.end()) line += " " + each;
    else types_of_absent[name] = std::string_view(each).substr(std::min(name.size() + 1, each.size()));
  }
  for (const std::string& each : options.constants) line += " " + each;
  for (const std::string& each : options.absent) {
    line += " " + each + "=none";
    if (auto type = types_of_absent.find(each); type != types_of_absent.end()) line += fmt::format(":{}", type->second);
  }
  if (options.backward) line += " backward";
  if (!options.gradients.empty()) line += " gradients=" + options.gradients;
  TRIREME_TRY(problem, parse_problem(line));
  TRIREME_TRY(prepared, load_layout(problem));
  Facts facts = facts_of(prepared.program, prepared.view());
  if (!options.config.empty()) {
    TRIREME_TRY(config, parse_config(options.config));
    facts.config = config;
  }
  return BoundProgram{std::move(prepared), facts};
}

}  // namespace trireme::cli
