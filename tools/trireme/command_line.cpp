// The only file that sees CLI11: its headers take longer to compile than most verbs.
#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "output.hpp"
#include "plan/settings.hpp"

namespace trireme::cli {
namespace {

std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  std::string what = error.what();
  if (const std::vector<std::string> rest = app->remaining(); !rest.empty() && app->get_subcommands().empty())
    what = "no verb '" + rest.front() + "'";
  if (app->get_subcommands().empty() && app->remaining().empty()) what = "which verb?";
  return "trireme: " + what + "\n'trireme --help' lists the verbs, 'trireme VERB --help' says more\n";
}

// In plain words.
CLI::Validator whole_number(Bounds<std::int64_t> bounds) {
  return CLI::Validator(
      [=](std::string& text) {
        std::int64_t value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= bounds.least && value <= bounds.most)
          return std::string();
        std::string range = "from " + std::to_string(bounds.least);
        if (bounds.most < INT64_MAX) range += " to " + std::to_string(bounds.most);
        return "expected a whole number " + range + ", not '" + text + "'";
      },
      "");
}

std::string footer_of(const CommandLine& line) {
  std::string text = "Environment:\n", codes;
  for (const environment::Setting& each : environment::settings())
    text += fmt::format("  {:<21} {}\n", fmt::format("{}={}", each.name, each.values), each.meaning);
  for (const CommandLine::ExitCode& each : line.exit_codes)
    codes += fmt::format("{} {} {}", codes.empty() ? "" : ",", each.code, each.meaning);
  return text + fmt::format("\nExit codes:{}.\n'{} VERB --help' says more.", codes, line.name);
}

// One overload for each kind of destination.
struct Adder {
  CLI::App& app;
  const Option& option;

  CLI::Option* operator()(bool* flag) const { return app.add_flag(option.name, *flag, option.help); }
  CLI::Option* operator()(std::vector<std::string>* values) const {
    CLI::Option* added = app.add_option(option.name, *values, option.help);
    return option.positional() ? added : added->take_all()->expected(1)->allow_extra_args(false);
  }
  CLI::Option* operator()(std::vector<std::int64_t>* values) const {
    return app.add_option(option.name, *values, option.help)->delimiter(',')->expected(1, 3);
  }
  CLI::Option* operator()(const std::function<void(const std::string&)>& take) const {
    return app.add_option_function<std::string>(option.name, take, option.help)
        ->trigger_on_parse()
        ->allow_extra_args(false);
  }
  template <typename T>
  CLI::Option* operator()(T* value) const {
    return app.add_option(option.name, *value, option.help);
  }
};

void add(CLI::App& app, const Option& option) {
  CLI::Option* added = std::visit(Adder{app, option}, option.destination);
  const OptionDetails& details = option.details;
  if (!details.type.empty()) added->type_name(details.type);
  if (details.required) added->required();
  if (details.show_default) added->capture_default_str();
  if (details.whole) added->check(whole_number(*details.whole));
  if (details.real) added->check(CLI::Range(details.real->least, details.real->most).description(""));
  if (!details.choices.empty()) added->check(CLI::IsMember(details.choices));
  if (!details.excludes.empty()) added->excludes(app.get_option(details.excludes));
  if (!details.needs.empty()) added->needs(app.get_option(details.needs));
}

}  // namespace

Result<int> CommandLine::run(int argc, char** argv) const {
  CLI::App app(summary, name);
  app.footer(footer_of(*this));
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  app.failure_message(usage_message);
  for (const Command& verb : verbs) {
    CLI::App* parser = app.add_subcommand(verb.name, verb.summary);
    if (!verb.footer.empty()) parser->footer(verb.footer);  // else the one above
    if (verb.hidden) parser->group("");
    for (const Option& option : verb.options) add(*parser, option);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {  // --help and --version too
    std::ostringstream help, wrong;
    const bool asked_for = app.exit(stop, help, wrong) == 0;
    fmt::print("{}", help.str());
    complain(wrong.str());
    return asked_for ? fine : wrong_usage;
  }
  for (const Command& verb : verbs) {
    if (!app.got_subcommand(verb.name)) continue;
    if (!verb.takes_wrong_settings) TRIREME_CHECK(check_settings());
    return verb.run();
  }
  return wrong_usage;
}

}  // namespace trireme::cli
