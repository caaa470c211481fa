// trireme list: the operators, each with its signature and the first line of its comment; or the page
// docs/operators.md.
#include <fmt/core.h>

#include <memory>

#include "plan/check.hpp"
#include "plan/operators_page.hpp"
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

Result<int> list(bool markdown) {
  if (markdown) {
    TRIREME_TRY(page, operators_markdown());
    fmt::print("{}", page);
    return fine;
  }
  for (const OperatorText& each : operator_texts()) {
    TRIREME_TRY(program, find_program(each.name));
    fmt::print("{}\n    {}\n", signature_of(program), first_comment(each.text));
  }
  return fine;
}

}  // namespace

Command list_verb() {
  auto markdown = std::make_shared<bool>(false);
  Command verb{.name = "list", .summary = "The operators that come with Trireme: signature and purpose"};
  verb.option("--markdown", *markdown, "As a page: programs, derived backwards, arrays moved");
  verb.run = [markdown] { return list(*markdown); };
  return verb;
}

}  // namespace trireme::cli
