// trireme show: a program, or its derived backward, at any stage of its way to code.
#include <fmt/core.h>

#include <memory>

#include "language/print.hpp"
#include "passes/advise.hpp"
#include "passes/passes.hpp"
#include "plan/emission.hpp"
#include "program_options.hpp"
#include "schedule/stages.hpp"
#include "sources.hpp"
#include "targets.hpp"
#include "verbs.hpp"

namespace trireme::cli {
namespace {

enum class Stage : std::uint8_t { Parse, Bind, Simplify, Expand, Stages, Lower, Code };

constexpr std::pair<std::string_view, Stage> stage_names[] = {{"parse", Stage::Parse},       {"bind", Stage::Bind},
                                                              {"simplify", Stage::Simplify}, {"expand", Stage::Expand},
                                                              {"stages", Stage::Stages},     {"lower", Stage::Lower}};

struct ShowOptions {
  ProgramOptions program;
  std::string after, target, arch;
};

// Without --after: the code if a target is named, else the program.
Result<Stage> stage_of(const ShowOptions& options) {
  if (options.after.empty()) return options.target.empty() ? Stage::Parse : Stage::Code;
  return one_of(stage_names, "--after", options.after);
}

Result<std::string> text_of(const ShowOptions& options) {
  TRIREME_TRY(stage, stage_of(options));
  TRIREME_TRY(target, find_target(options.target.empty() ? targets()[0]->name : options.target));
  if (stage == Stage::Parse) {
    TRIREME_TRY(program, load_program(options.program.program, options.program.backward));
    std::string text = print(program);
    for (const std::string& remark : advise(program)) text += "# " + remark + "\n";
    return text;
  }
  TRIREME_TRY(bound, bind_program(options.program));
  const Program& expanded = bound.prepared.program;
  auto lowered = [&] { return lower_for(bound.prepared, bound.facts, *target, options.arch); };
  switch (stage) {
    case Stage::Parse: break;
    case Stage::Bind: return print(bound.prepared.bound);
    case Stage::Simplify: return print(simplify(bound.prepared.bound));
    case Stage::Expand: return print(expanded);
    case Stage::Stages: return print(split_into_stages(expanded), expanded);
    case Stage::Lower: {
      TRIREME_TRY(kernels, lowered());
      return print(kernels);
    }
    case Stage::Code: {
      TRIREME_TRY(kernels, lowered());
      return target->listing(kernels.kernels, kernels.arch);
    }
  }
  return std::string();
}

}  // namespace

Command show_verb() {
  auto options = std::make_shared<ShowOptions>();
  Command verb{.name = "show", .summary = "Prints a program, or its derived backward, at a stage of compilation"};
  add_program_options(verb, options->program);
  verb.option("--after", options->after,
              "The stage whose outcome is printed: parse (the program; the default), bind, simplify, expand "
              "(primitives only), stages (sweeps over the row), lower (config and kernels of the target)",
              {.type = "STAGE", .words = [] { return words_of(stage_names); }});
  verb.option("--target", options->target, target_help() + ": prints the target's own text, unless --after",
              {.type = "TARGET", .words = target_words});
  verb.option("--arch", options->arch, arch_help(), {.type = "ARCH", .words = arch_words});
  verb.footer =
      "Examples:\n"
      "  trireme show rms_norm --backward\n"
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
