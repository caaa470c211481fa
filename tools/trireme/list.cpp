// trireme list: the operators, each with its signature and the first line of its comment; or the page
// docs/operators.md.
#include <fmt/core.h>

#include <memory>

#include "plan/emission.hpp"
#include "plan/operators_page.hpp"
#include "plan/ops.hpp"
#include "reports.hpp"
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

struct ListOptions {
  bool markdown = false, json = false;
};

Result<OperatorReport> report_of(const OperatorText& text, bool with_backward) {
  TRIREME_TRY(program, RowProgram::named(text.name));
  OperatorReport report{.name = std::string(text.name),
                        .purpose = std::string(first_comment(text.text)),
                        .signature = signature_of(program.graph()),
                        .program = program.print(),
                        .parameters = program.signature()};
  if (!with_backward) return report;
  if (Result<RowProgram> backward = program.differentiate()) report.backward = backward->print();
  return report;
}

Result<int> list(const ListOptions& options) {
  if (options.markdown) {
    TRIREME_TRY(page, operators_markdown());
    fmt::print("{}", page);
    return fine;
  }
  std::vector<OperatorReport> operators;
  for (const OperatorText& each : operator_texts()) {
    TRIREME_TRY(report, report_of(each, options.json));
    if (options.json) operators.push_back(std::move(report));
    else fmt::print("{}\n    {}\n", report.signature, report.purpose);
  }
  if (options.json) fmt::print("{}", as_json(operators));
  return fine;
}

}  // namespace

Command list_verb() {
  auto options = std::make_shared<ListOptions>();
  Command verb{.name = "list", .summary = "The operators that come with Trireme: signature and purpose"};
  verb.option("--markdown", options->markdown, "As a page: programs, derived backwards, arrays moved");
  verb.option("--json", options->json, "A JSON list instead, with every parameter (docs/json.md)",
              {.excludes = "--markdown"});
  verb.run = [options] { return list(*options); };
  return verb;
}

}  // namespace trireme::cli
