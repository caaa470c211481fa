// trireme show: a program, or its derived backward, at any stage of its way to code.
#include "plan/show.hpp"

#include <fmt/format.h>

#include <memory>

#include "language/print.hpp"
#include "passes/passes.hpp"
#include "program_options.hpp"
#include "sources.hpp"
#include "targets.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

struct ShowOptions {
  ProgramOptions program;
  std::string after, target, arch;
  bool compose = false, split = false;
};

std::vector<std::string> stage_words() {
  std::vector<std::string> words;
  for (const auto& [name, summary] : show_points()) words.emplace_back(name);
  return words;
}

std::string stage_help() {
  std::string text;
  for (const auto& [name, summary] : show_points())
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", name, summary, text.empty() ? "; the default" : "");
  return "The stage or pass whose outcome is printed: " + text;
}

// Without --after: the code if a target is named, else the program.
Result<std::string> text_of(const ShowOptions& options) {
  const std::string_view first = show_stages()[0].name;
  TRIREME_TRY(point, find_show_point(options.after.empty() ? first : options.after));
  if ((options.split || options.compose) && !(options.after.empty() && options.target.empty()))
    return Error{Code::InvalidArgument,
                 std::string(options.split ? "--split prints programs" : "--compose prints a program") +
                     "; leave out --after and --target, and give " + (options.split ? "a phase's program" : "it") +
                     " in a file to see its code"};
  TRIREME_TRY(target, find_target(options.target.empty() ? targets()[0]->name : options.target));
  const bool code = options.after.empty() && !options.target.empty();
  if (!code && (options.after.empty() || options.after == first)) {  // nothing needs to be bound
    const ProgramOptions& said = options.program;
    DifferentiateOptions gradients{.gradients = names_listed(said.gradients)};
    gradients.absent = std::set(said.absent.begin(), said.absent.end());
    TRIREME_TRY(program, said.backward ? load_backward(said.program, gradients) : load_program(said.program));
    if (options.compose) program = compose(program);
    if (!options.split) return show_program(program);
    TRIREME_TRY(row_program, RowProgram::parse(print(program)));
    TRIREME_TRY(phases, row_program.split());
    return print(phases);
  }
  TRIREME_TRY(bound, bind_program(options.program));
  const Shown shown{bound.prepared, bound.facts, *target, options.arch};
  return code ? show_code(shown) : point.text(shown);
}

}  // namespace

Command show_verb() {
  auto options = std::make_shared<ShowOptions>();
  Command verb{.name = "show", .summary = "Prints a program, or its derived backward, at a stage of compilation"};
  add_program_options(verb, options->program);
  verb.option(
      "--compose", options->compose,
      "Writes reductions that wait for another of the same element as totals that are made together: a variance "
      "by two means, exponentials shifted by a maximum");
  verb.option(
      "--split", options->split,
      "Cuts the program at its row reductions, for rows spread over machines: each phase's program, then what the "
      "machines exchange and how two neighbours' values are combined");
  verb.option("--after", options->after, stage_help(), {.type = "STAGE", .words = stage_words});
  verb.option("--target", options->target, target_help() + ": prints the target's own text, unless --after",
              {.type = "TARGET", .words = target_words});
  verb.option("--arch", options->arch, arch_help(), {.type = "ARCH", .words = arch_words});
  verb.footer =
      "Examples:\n"
      "  trireme show rms_norm --backward\n"
      "  trireme show layer_norm --backward --split\n"
      "  trireme show softmax --compose --split\n"
      "  trireme show rms_norm --after expand --type x=bf16 --absent gamma\n"
      "  trireme show rms_norm --target ptx --cols 4096 --type x=bf16\n"
      "  trireme show rms_norm --target x86 --arch avx512 --config \"simd lanes=16 unroll=4\"";
  verb.run = [options]() -> Result<int> {
    TRIREME_TRY(text, text_of(*options));
    fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
    return fine;
  };
  return verb;
}

}  // namespace trireme::cli
