// trireme man: the manual page, made from the tables that the arguments are read by. For packaging; help does not list
// it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

#include "support/environment.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

// Text for roff: backslashes and hyphens as they are, and no line that roff would take for a request.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

// One line of the footer after the other; those set in are examples.
std::string footer_of(const std::string& footer) {
  std::string out;
  bool example = false;
  for (std::size_t at = 0, end; at < footer.size(); at = end + 1) {
    end = std::min(footer.find('\n', at), footer.size());
    const std::string_view line = std::string_view(footer).substr(at, end - at);
    if (const bool set_in = line.starts_with("  "); set_in != example) {
      out += set_in ? ".PP\n.EX\n" : ".EE\n.PP\n";
      example = set_in;
    }
    if (!line.empty()) out += roff(line) + "\n";
  }
  return out.empty() ? out : ".PP\n" + out + (example ? ".EE\n" : "");
}

// What help calls a value.
std::string type_of(const Option& option) {
  return fmt::format("\\fI{}\\fR", roff(option.details.type.empty() ? option.name : option.details.type));
}

std::string default_of(const Option& option) {
  if (!option.details.show_default) return {};
  if (auto* const* text = std::get_if<std::string*>(&option.destination)) return "; default " + **text;
  if (auto* const* number = std::get_if<double*>(&option.destination)) return fmt::format("; default {}", **number);
  if (auto* const* number = std::get_if<int*>(&option.destination)) return fmt::format("; default {}", **number);
  if (auto* const* number = std::get_if<std::int64_t*>(&option.destination))
    return fmt::format("; default {}", **number);
  return {};
}

std::string option_of(const Option& option) {
  std::string head = option.positional() ? type_of(option) : fmt::format("\\fB{}\\fR", roff(option.name));
  if (option.takes_value() && !option.positional()) head += " " + type_of(option);
  return fmt::format(".TP\n{}\n{}{}{}\n", head, roff(option.help), roff(default_of(option)),
                     option.details.required ? "; required" : "");
}

std::string verb_of(const Command& verb) {
  std::string usage = fmt::format("\\fBtrireme {}\\fR", verb.name);
  for (const Option& each : verb.options) {
    if (!each.positional()) continue;
    std::string argument = type_of(each) + (each.repeatable() ? "..." : "");
    usage += each.details.required ? " " + argument : " [" + argument + "]";
  }
  std::string text = fmt::format(".SS {}\n{} [\\fIOPTIONS\\fR]\n.PP\n{}.\n", verb.name, usage, roff(verb.summary));
  for (const Option& each : verb.options) text += option_of(each);
  return text + footer_of(verb.footer);
}

std::string man_page(const CommandLine& line) {
  std::string text = fmt::format(
      ".\\\" Made by 'trireme man'.\n"
      ".TH {0} 1 \"\" \"{1} {2}\" \"User Commands\"\n"
      ".SH NAME\n{1} \\- compiles row programs: norms, softmax, gated units, losses\n"
      ".SH SYNOPSIS\n\\fB{1}\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR]\n"
      ".br\n\\fB{1}\\fR [\\fIVERB\\fR] \\fB\\-\\-help\\fR\n"
      ".br\n\\fB{1}\\fR \\fB\\-\\-version\\fR\n"
      ".SH DESCRIPTION\n{3}\n.SH VERBS\n",
      "TRIREME", line.name, line.version, roff(line.summary));
  for (const Command& each : line.verbs)
    if (!each.hidden) text += verb_of(each);
  text += ".SH ENVIRONMENT\n";
  for (const environment::Setting& each : environment::settings())
    text += fmt::format(".TP\n\\fB{}\\fR=\\fI{}\\fR\n{}\n", each.name, each.values, roff(each.meaning));
  text += ".SH EXIT STATUS\n";
  for (const CommandLine::ExitCode& each : line.exit_codes)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", each.code, roff(each.meaning));
  return text;
}

}  // namespace

Command man_verb(const CommandLine& line) {
  return {.name = "man",
          .summary = "The manual page",
          .run = [&line]() -> Result<int> {
            fmt::print("{}", man_page(line));
            return fine;
          },
          .hidden = true};
}

}  // namespace trireme::cli
