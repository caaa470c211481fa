// trireme drift: where two traces of a model first part.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "drift/compare.hpp"
#include "progress.hpp"
#include "reports.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

using drift::ArrayDifference, drift::Blame, drift::Event, drift::Parting;

struct DriftOptions {
  std::string folders[2], rows, calls;
  bool all = false, json = false;
  int limit = 1;
};

Error wrong_drift_use(const std::string& what) { return {Code::InvalidArgument, what}; }

// Takes a whole number from the front of a text.
bool take(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{} && number >= 0;
}
bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// A:B/N
bool take(std::string_view& text, drift::Rows& rows) {
  if (!take(text, rows.first) || !take(text, ':') || !take(text, rows.last)) return false;
  return !take(text, '/') || take(text, rows.of.emplace());
}

Result<drift::CompareOptions> compare_options(const DriftOptions& options) {
  drift::CompareOptions how{.limit = options.all ? SIZE_MAX : static_cast<std::size_t>(options.limit)};
  if (std::string_view text = options.rows; !text.empty())
    if (!take(text, how.rows[0].emplace()) || !take(text, '=') || !take(text, how.rows[1].emplace()) || !text.empty())
      return wrong_drift_use("--rows " + options.rows + ": expected A:B=C:D, as 20:21=0:1, or A:B/N=C:D/M");
  if (std::string_view text = options.calls; !text.empty())
    if (!take(text, how.calls[0].emplace()) || !take(text, '=') || !take(text, how.calls[1].emplace()) || !text.empty())
      return wrong_drift_use("--calls " + options.calls + ": expected K=L, as 1=13");
  return how;
}

// ---- as text ----

std::string event_named(const Event& event) { return fmt::format("{} {}", drift::name(event.kind), event.label()); }

void print_array(const char* what, const ArrayDifference& array) {
  std::string line = fmt::format("  {} differs", array.name.empty() ? what : fmt::format("{} '{}'", what, array.name));
  if (!array.reason.empty()) {
    fmt::print("{}: {}\n", line, array.reason);
    return;
  }
  line += fmt::format(": {} [{}], ", array.a->type, fmt::join(array.a->shape, ", "));
  line += array.last_row == array.first_row + 1 ? fmt::format("row {}", array.first_row)
                                                : fmt::format("rows {}:{}", array.first_row, array.last_row);
  if (array.first_row_b != array.first_row) line += fmt::format(" (row {} of b)", array.first_row_b);
  if (array.blocks > 1)
    line += fmt::format(", the first of {} {}", array.blocks, array.a->block() > 1 ? "blocks" : "rows");
  fmt::print("{}\n", line);
  if (!array.elements) return;
  const drift::ElementDifferences& elements = *array.elements;
  line = fmt::format("    element [{}, {}]: {} against {}", elements.row, elements.column, elements.a, elements.b);
  if (elements.ulps)
    line += *elements.ulps ? fmt::format(", {} ulp{}", *elements.ulps, *elements.ulps == 1 ? "" : "s")
                           : ", which differ by the sign of zero";
  if (elements.count > 1) {
    line += fmt::format("; {} elements differ", elements.count);
    if (elements.most_ulps) line += fmt::format(", by at most {} ulps", *elements.most_ulps);
  }
  fmt::print("{}\n", line);
}

void print_sources(const ArrayDifference& input) {
  const auto& [a, b] = input.from;
  const bool unset = input.a && (input.a->unset || input.b->unset);
  if (!a.event && !b.event) {
    if (input.a)
      fmt::print("    {}\n",
                 unset ? "from memory that no operator was seen to write: by a kernel outside of torch, or by nobody"
                       : "given from outside of the trace");
    return;
  }
  auto line = [](const char* run, const drift::Source& source) {
    if (!source.event) fmt::print("    in {} given from outside of the trace\n", run);
    else
      fmt::print("    in {} from event {}, {}{}\n", run, source.event->number, event_named(*source.event),
                 source.aligned ? "" : fmt::format(", which only {} has", run));
  };
  line("a", a), line("b", b);
  if (a.aligned && b.aligned && unset) fmt::print("    it was never wholly written where the trace could see it\n");
}

void print_blame(const Parting& parting) {
  const std::size_t inputs = parting.a->in.size();
  std::string equal = inputs == 0   ? "it has no inputs"
                      : inputs == 1 ? "its input is equal"
                                    : fmt::format("its {} inputs are equal", inputs);
  if (parting.unknown_inputs)
    equal = fmt::format("none of its inputs is known to differ, {} could not be compared", parting.unknown_inputs);
  switch (parting.blame) {
    case Blame::Parameter:
      fmt::print("  to blame: the parameter or buffer, which differed before anything ran\n");
      break;
    case Blame::Input:
      fmt::print("  to blame: its input, not the {}\n", drift::name(parting.a->kind));
      for (const ArrayDifference& each : parting.inputs) print_array("input", each), print_sources(each);
      break;
    case Blame::Arguments:
      fmt::print("  to blame: its arguments; {}\n", equal);
      for (const Event* each : {parting.a, parting.b})
        fmt::print("    {}: {}\n", each == parting.a ? "a" : "b", each->arguments.empty() ? "none" : each->arguments);
      break;
    case Blame::Random:
      fmt::print("  to blame: the operator, which draws random numbers: generators differ; {}\n", equal);
      break;
    case Blame::Operator: fmt::print("  to blame: the operator; {}\n", equal); break;
    case Blame::Module: fmt::print("  to blame: the module, inside of which other operators run; {}\n", equal); break;
    case Blame::Inside: fmt::print("  to blame: what was found inside of it; {}\n", equal); break;
  }
}

void print_report(const DriftReport& report) {
  const drift::CompareReport& compared = report.compared;
  for (const int side : {0, 1}) {
    const DriftReport::Run& run = report.runs[side];
    fmt::print("{}  {}: {} events", side ? "b" : "a", run.folder, compared.events[side]);
    if (compared.looked_at[side] != compared.events[side])
      fmt::print(", {} of them in the call", compared.looked_at[side]);
    if (compared.rows_of[side]) fmt::print(", arrays of {} rows", compared.rows_of[side]);
    if (!run.ended) fmt::print("; CUT OFF");
    if (!run.failure.empty()) fmt::print("; ended by {}", run.failure);
    fmt::print("\n");
  }
  fmt::print("{} aligned: {} the same, {} differ", compared.aligned, compared.same, compared.different);
  if (compared.unknown) fmt::print(", {} not comparable", compared.unknown);
  if (compared.by_operators) fmt::print("; {} by the operator, on equal inputs", compared.by_operators);
  fmt::print("\n");
  bool elements = true;
  for (const Parting& each : compared.partings) {
    fmt::print("\n{} event {}: {}", &each == compared.partings.data() ? "They part at" : "Also", each.a->number,
               event_named(*each.a));
    if (each.b->number != each.a->number) fmt::print(" (event {} of b)", each.b->number);
    fmt::print("\n");
    for (const ArrayDifference& output : each.outputs) {
      print_array(each.a->kind == Event::Kind::State ? "it" : "output", output);
      elements = elements && (output.elements || !output.reason.empty());
    }
    print_blame(each);
    if (&each == compared.partings.data() && compared.last_same)
      fmt::print("  before it, the same: event {}, {}\n", compared.last_same->number, event_named(*compared.last_same));
  }
  if (compared.different > compared.partings.size())
    fmt::print("\n{} more differ: --limit N or --all shows them\n", compared.different - compared.partings.size());
  if (!elements) fmt::print("Elements and ulps: trace both again with arrays=\"{}*\"\n", compared.partings[0].a->path);
  if (report.same()) fmt::print("the same bits wherever both have values\n");
  else if (!compared.different) fmt::print("the same as far as both go, but a trace is cut off\n");
}

Result<int> find_drift(const DriftOptions& options) {
  TRIREME_TRY(how, compare_options(options));
  std::optional<Result<drift::Trace>> traces[2];
  DriftReport report;
  {
    Progress progress("drift");
    for (const int side : {0, 1}) {
      traces[side].emplace(
          drift::Trace::read(options.folders[side], [&](double part) { progress.at(part, "reading"); }));
      if (!*traces[side]) return traces[side]->error();
      const drift::Trace& trace = **traces[side];
      report.runs[side] = {options.folders[side], trace.failure(), trace.ended()};
    }
    how.progress = [&](double part) { progress.at(part, "comparing"); };
    TRIREME_TRY(compared, drift::compare(**traces[0], **traces[1], how));
    report.compared = std::move(compared);
  }
  if (report.compared.same + report.compared.different == 0)
    return wrong_drift_use(fmt::format("{} and {} have nothing that can be compared: {} events are aligned",
                                       options.folders[0], options.folders[1], report.compared.aligned));
  if (options.json) fmt::print("{}", as_json(report));
  else print_report(report);
  return report.same() ? fine : check_failed;
}

}  // namespace

Command drift_verb() {
  auto options = std::make_shared<DriftOptions>();
  Command verb{.name = "drift", .summary = "Finds where two traces of a model first part, and by what"};
  verb.option("a", options->folders[0], "A folder, as trireme.torch.trace writes it",
              {.type = "FOLDER", .required = true});
  verb.option("b", options->folders[1], "Another, of the other run", {.type = "FOLDER", .required = true});
  verb.option("--rows", options->rows,
              "Only rows A to B - 1 of a against C to D - 1 of b, of arrays that have N rows and M; as many as most "
              "outputs of modules have, unless said",
              {.type = "A:B[/N]=C:D[/M]"});
  verb.option("--calls", options->calls, "Only what belongs to the K-th call of the model in a, the L-th in b; from 1",
              {.type = "K=L"});
  verb.option("--limit", options->limit, "How many of the events that differ are described",
              {.type = "N", .show_default = true, .whole = Bounds<std::int64_t>{1, 1 << 30}});
  verb.option("--all", options->all, "All of them", {.excludes = "--limit"});
  verb.option("--json", options->json, "JSON instead of lines (docs/json.md)");
  verb.footer =
      "Events are aligned by module, operator and order, so runs with other operators still meet at their modules.\n"
      "  trireme drift trainer sampler --rows 20:21=0:1 --calls 1=13\n"
      "Exits with 1 if any output differs or a trace is cut off (docs/drift.md).";
  verb.run = [options] { return find_drift(*options); };
  return verb;
}

}  // namespace trireme::cli
