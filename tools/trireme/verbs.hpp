// The verbs of the command line. Each adds its subcommand and options to the app and says what to do when chosen.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "trireme/result.hpp"

namespace trireme::cli {

// Exit codes; wrong input comes as an Error.
inline constexpr int fine = 0, check_failed = 1, wrong_usage = 2;

struct Verb {
  CLI::App* app;
  std::function<Result<int>()> run;  // the exit code
};

// Checks for numbers, in plain words.
inline CLI::Validator from_to(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [=](std::string& text) {
        std::int64_t value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        std::string range = "from " + std::to_string(least);
        if (most < INT64_MAX) range += " to " + std::to_string(most);
        return "expected a whole number " + range + ", not '" + text + "'";
      },
      "");
}
inline CLI::Validator at_least(std::int64_t least) { return from_to(least, INT64_MAX); }

Verb add_list(CLI::App& app);
Verb add_show(CLI::App& app);
Verb add_emit(CLI::App& app);
Verb add_run(CLI::App& app);
Verb add_verify(CLI::App& app);
Verb add_bench(CLI::App& app);
Verb add_tune(CLI::App& app);
Verb add_jit(CLI::App& app);
Verb add_cache(CLI::App& app);
Verb add_doctor(CLI::App& app);

}  // namespace trireme::cli
