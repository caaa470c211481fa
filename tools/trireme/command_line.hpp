// A command line as data: verbs, each with its options, what they are called and where their values go.
// command_line.cpp reads the arguments by it; what else describes the tool walks the same tables.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::cli {

// Exit codes; wrong input comes as an Error.
inline constexpr int fine = 0, check_failed = 1, wrong_usage = 2;

// Where values go. A vector of strings takes an option as often as it is given, or all positionals; a vector of
// integers takes up to three from one argument, commas between; a function is called for every value, in the order of
// arguments.
using Destination =
    std::variant<bool*, int*, std::int64_t*, std::uint32_t*, double*, std::string*, std::vector<std::string>*,
                 std::vector<std::int64_t>*, std::function<void(const std::string&)>>;

template <typename T>
struct Bounds {
  T least, most;
};

struct OptionDetails {
  std::string type;  // what help calls a value: FILE, NAME=TYPE
  bool required = false, show_default = false;
  std::optional<Bounds<std::int64_t>> whole;  // of integers
  std::optional<Bounds<double>> real;         // of doubles
  std::vector<std::string> choices;           // nothing else is taken
  // Options of the same command, named before this one: that cannot be given with it, and that must be.
  std::string excludes, needs;
  std::function<std::vector<std::string>()> words;  // what completion offers, where other values are taken too
};

struct Option {
  std::string name;  // "--cols", "-o"; a positional has no dash
  Destination destination;
  std::string help;
  OptionDetails details;

  bool positional() const { return !name.starts_with('-'); }
  bool takes_value() const { return !std::holds_alternative<bool*>(destination); }
  bool repeatable() const {
    return std::holds_alternative<std::vector<std::string>*>(destination) ||
           std::holds_alternative<std::function<void(const std::string&)>>(destination);
  }
};

struct Command {
  std::string name, summary, footer;
  std::vector<Option> options;
  std::function<Result<int>()> run;   // the exit code
  bool takes_wrong_settings = false;  // of the environment; else they are an error before it runs
  bool hidden = false;                // from help and completion

  // Adds an option; `value` must live as long as `run`, and is its own default.
  template <typename T>
  void option(std::string name, T& value, std::string help, OptionDetails details = {}) {
    options.push_back({std::move(name), &value, std::move(help), std::move(details)});
  }
  void each(std::string name, std::function<void(const std::string&)> take, std::string help, OptionDetails details) {
    options.push_back({std::move(name), std::move(take), std::move(help), std::move(details)});
  }
};

struct CommandLine {
  struct ExitCode {
    int code;
    std::string meaning;
  };
  std::string name, summary, version;
  std::vector<ExitCode> exit_codes;
  std::vector<Command> verbs;

  // Reads the arguments, and runs the verb they choose. Help, the version and usage errors are printed here: their exit
  // code comes back as if a verb had given it.
  Result<int> run(int argc, char** argv) const;
};

inline Bounds<std::int64_t> at_least(std::int64_t least) { return {least, INT64_MAX}; }

}  // namespace trireme::cli
