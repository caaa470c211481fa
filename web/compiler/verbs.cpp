#include "verbs.hpp"

#include <cstring>

#include "devices/arguments.hpp"
#include "ir/contract.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "language/names.hpp"
#include "math/functions.hpp"
#include "passes/advise.hpp"
#include "passes/passes.hpp"
#include "plan/emission.hpp"
#include "plan/ops.hpp"
#include "plan/show.hpp"
#include "problem/problem_shape.hpp"
#include "problem/remarks.hpp"
#include "schedule/schedule_passes.hpp"
#include "trireme/program.hpp"

namespace trireme::web {
namespace {

std::string as_json(const RowProgram& program) {
  static constexpr std::string_view kinds[] = {"operand", "constant", "result"};
  const std::optional<std::size_t> leading = leading_operand(program.graph());
  return Object()
      .text("name", program.name())
      .text("text", program.print())
      .text("leading", leading ? program.graph().operands[*leading].name : "")
      .raw("parameters", array(program.signature(),
                               [](const RowProgram::Parameter& each) {
                                 Object object;
                                 object.text("name", each.name).text("kind", kinds[static_cast<int>(each.kind)]);
                                 object.text("spread", each.spread).flag("optional", each.optional);
                                 if (each.fallback) object.number("fallback", *each.fallback);
                                 return object.done();
                               }))
      .raw("advice", array(advise(program.graph()), quoted))
      .done();
}

// TEXT: the program and, where there is one, its derived backward; or why there is none.
Result<Answer> read_program(Words words) {
  TRIREME_TRY(program, RowProgram::parse(words[0]));
  TRIREME_TRY(remarks, parse_remarks(words[0]));
  Object object;
  object.raw("forward", as_json(program));
  const Result<RowProgram> backward = program.differentiate();
  if (backward) object.raw("backward", as_json(*backward));
  else object.text("noBackward", backward.error().message);
  object.raw("tries", array(remarks.tries, quoted)).raw("returns", array(remarks.returns, quoted));
  return Answer{object.done()};
}

// A problem line bound to a program's text, without memory, what a compiler may rely on, and the kernels of a target. The last
// of each is kept: a page asks for every stage and target of one problem, for text and for bytes.
struct Bound {
  std::string text, line, config;
  Prepared prepared;
  Facts facts;
  const Target* target = nullptr;
  std::string arch;
  Lowered lowered = {};

  Status lower(const Target& wanted, std::string_view wanted_arch) {
    if (wanted_arch.empty()) wanted_arch = wanted.default_arch;
    if (target == &wanted && arch == wanted_arch) return Done{};
    target = nullptr;
    TRIREME_TRY(machine, wanted.machine(wanted_arch));
    TRIREME_TRY(made, lower_for(prepared.program, machine, facts, true));
    lowered = std::move(made);
    target = &wanted;
    arch = wanted_arch;
    return Done{};
  }
};

Result<Bound*> bound_problem(std::string_view text, std::string_view line, std::string_view config) {
  static std::optional<Bound> last;
  if (last && last->text == text && last->line == line && last->config == config) return &*last;
  last.reset();
  TRIREME_TRY(problem, parse_problem(line));
  TRIREME_TRY(prepared, prepare_problem(problem, text, Fill::NoMemory));
  Facts facts = facts_of(prepared.program, prepared.view());
  if (!config.empty()) {
    TRIREME_TRY(parsed, parse_config(config));
    facts.config = parsed;
  }
  return &last.emplace(std::string(text), std::string(line), std::string(config), std::move(prepared), std::move(facts));
}

// TEXT LINE CONFIG STAGE TARGET ARCH: the text after a stage; no stage: the target's code.
Result<Answer> show(Words words) {
  TRIREME_TRY(bound, bound_problem(words[0], words[1], words[2]));
  TRIREME_TRY(target, find_target(words[4]));
  Shown shown{bound->prepared, bound->facts, *target, std::string(words[5])};
  const auto lower = [&]() -> Status {
    TRIREME_CHECK(bound->lower(*target, words[5]));
    shown.lowered = &bound->lowered;
    return Done{};
  };
  if (words[3].empty()) {
    TRIREME_CHECK(lower());
    TRIREME_TRY(text, show_code(shown));
    return Answer{std::move(text)};
  }
  TRIREME_TRY(point, find_show_point(words[3]));
  if (point.of_target) TRIREME_CHECK(lower());
  TRIREME_TRY(text, point.text(shown));
  return Answer{std::move(text)};
}

// TEXT LINE CONFIG TARGET ARCH: the artifact as bytes, and what its caller has to know.
Result<Answer> emit_bytes(Words words) {
  TRIREME_TRY(bound, bound_problem(words[0], words[1], words[2]));
  TRIREME_TRY(target, find_target(words[3]));
  TRIREME_CHECK(bound->lower(*target, words[4]));
  TRIREME_TRY(emission, emit(bound->prepared, bound->facts, *target, bound->arch, bound->lowered));
  return Answer{Object()
                    .text("program", emission.program)
                    .text("target", emission.target)
                    .text("arch", emission.arch)
                    .text("config", emission.config)
                    .text("description", emission.description)
                    .raw("manifest", emission.manifest)
                    .done(),
                std::move(emission.bytes)};
}

// TEXT DIRECTION: the stages of a program whose rows are spread over several machines.
Result<Answer> split_program(Words words) {
  TRIREME_TRY(program, parse(words[0]));
  if (words[1] == "backward") {
    TRIREME_TRY(backward, differentiate(program));
    program = std::move(backward);
  }
  TRIREME_TRY(stages, split(program));
  return Answer{array(stages, [](const SplitStage& stage) {
    return Object()
        .text("program", print(stage.program))
        .raw("exchanges", array(stage.exchanges,
                                [](const Exchange& each) {
                                  return Object()
                                      .text("name", each.name)
                                      .text("by", each.op == Op::Sum    ? "sum"
                                                  : each.op == Op::Amax ? "amax"
                                                                        : "amin")
                                      .done();
                                }))
        .done();
  })};
}

// The tables that a user chooses from: operators, functions (errors of f32), targets, stages, passes of the schedule, the
// language's words, storage types.
Result<Answer> describe(Words) {
  static constexpr std::string_view forms[] = {"text", "code", "module"};
  return Answer{Object()
                    .whole("contract", contract::version)
                    .raw("operators", array(operator_texts(),
                                            [](const OperatorText& each) {
                                              return Object().text("name", each.name).text("text", each.text).done();
                                            }))
                    .raw("targets", array(targets(),
                                          [](const Target* each) {
                                            return Object()
                                                .text("name", each->name)
                                                .text("form", forms[static_cast<int>(each->form)])
                                                .text("defaultArch", each->default_arch)
                                                .text("archs", each->archs)
                                                .raw("commonArchs", array(each->common_archs, quoted))
                                                .done();
                                          }))
                    .raw("stages", array(show_stages(),
                                         [](const ShowStage& each) {
                                           return Object()
                                               .text("name", each.name)
                                               .text("summary", each.summary)
                                               .flag("ofTarget", each.of_target)
                                               .done();
                                         }))
                    .raw("passes", array(schedule_passes(),
                                         [](const SchedulePass& each) {
                                           return Object().text("name", each.name).text("summary", each.summary).done();
                                         }))
                    .raw("functions", array(functions(),
                                            [](const Function& each) {
                                              static constexpr std::string_view units[] = {"ulp", "of |x|", "absolute"};
                                              return Object()
                                                  .text("name", each.name)
                                                  .whole("arity", each.arity)
                                                  .text("formula", each.formula)
                                                  .text("domain", each.domain)
                                                  .text("unit", units[static_cast<int>(each.unit)])
                                                  .number("bound", each.f32.bound)
                                                  .done();
                                            }))
                    .raw("words", array(words, quoted))
                    .raw("types", array(type_facts,
                                        [](const TypeFacts& each) {
                                          return Object()
                                              .text("name", each.name)
                                              .whole("bits", each.bits)
                                              .flag("integer", is_integer(each.type))
                                              .done();
                                        }))
                    .done()};
}

constexpr Verb table[] = {
    {"describe", 0, describe}, {"program", 1, read_program}, {"show", 6, show},
    {"emit", 5, emit_bytes},   {"split", 2, split_program},  {"open", 2, open_problem},
    {"run", 2, run_problem},   {"oracle", 1, ask_oracle},    {"close", 1, close_problem},
};

}  // namespace

std::span<const Verb> verbs() { return table; }

}  // namespace trireme::web
