// trireme list: the operators, each with its signature and the first line of its comment.
#include <fmt/core.h>

#include "plan/check.hpp"
#include "plan/ops.hpp"
#include "sources.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

std::string_view line_of(std::string_view text, std::size_t at) { return text.substr(at, text.find('\n', at) - at); }

std::string_view first_comment(std::string_view text) {
  constexpr std::string_view mark = "# ";
  std::size_t at = text.starts_with(mark) ? 0 : text.find("\n# ");
  if (at == text.npos) return {};
  return line_of(text, text.find(mark, at) + mark.size());
}

Result<int> list() {
  for (const OperatorText& each : operator_texts()) {
    TRIREME_TRY(program, find_program(each.name));
    fmt::print("{}\n    {}\n", signature_of(program), first_comment(each.text));
  }
  return fine;
}

}  // namespace

Verb add_list(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("list", "The operators that come with Trireme: signature and purpose");
  return {verb, list};
}

}  // namespace trireme::cli
