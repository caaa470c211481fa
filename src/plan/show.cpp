#include "plan/show.hpp"

#include "language/print.hpp"
#include "passes/advise.hpp"
#include "passes/passes.hpp"
#include "schedule/lower.hpp"
#include "schedule/schedule_passes.hpp"
#include "schedule/stages.hpp"

namespace trireme {
namespace {

std::string_view arch_of(const Shown& shown) {
  return shown.arch.empty() ? shown.target.default_arch : std::string_view(shown.arch);
}

template <typename Text>
Result<std::string> text_of_lowered(const Shown& shown, Text&& text) {
  if (shown.lowered) return text(*shown.lowered);
  TRIREME_TRY(machine, shown.target.machine(arch_of(shown)));
  TRIREME_TRY(lowered, lower_for(shown.prepared.program, machine, shown.facts, true));
  return text(lowered);
}

// The kernels that the schedule's decisions up to this pass make.
Result<std::string> text_after(const Shown& shown, const SchedulePass& pass) {
  return text_of_lowered(shown, [&](const Lowered& whole) -> Result<std::string> {
    Config config = config_after(whole.config, pass);
    TRIREME_TRY(kernels, lower(shown.prepared.program, config, true));
    return print(Lowered{std::move(config), std::move(kernels)});
  });
}

constexpr ShowStage table[] = {
    {"parse", "the program", false,
     [](const Shown& shown) -> Result<std::string> { return show_program(shown.prepared.source); }},
    {"bind", "types, constants and absent operands fixed", false,
     [](const Shown& shown) -> Result<std::string> { return print(shown.prepared.bound); }},
    {"simplify", "rewritten exactly", false,
     [](const Shown& shown) -> Result<std::string> { return print(simplify(shown.prepared.bound)); }},
    {"expand", "primitives only", false,
     [](const Shown& shown) -> Result<std::string> { return print(shown.prepared.program); }},
    {"stages", "sweeps over the row", false,
     [](const Shown& shown) -> Result<std::string> {
       return print(split_into_stages(shown.prepared.program), shown.prepared.program);
     }},
    {"lower", "config and kernels of the target", true,
     [](const Shown& shown) -> Result<std::string> {
       return text_of_lowered(shown, [](const Lowered& lowered) -> Result<std::string> { return print(lowered); });
     }},
};

}  // namespace

std::string show_program(const Program& program) {
  std::string text = print(program);
  for (const std::string& remark : advise(program)) text += "# " + remark + "\n";
  return text;
}

std::span<const ShowStage> show_stages() { return table; }

std::vector<std::pair<std::string_view, std::string_view>> show_points() {
  std::vector<std::pair<std::string_view, std::string_view>> points;
  for (const ShowStage& each : table) {
    if (&each == &std::end(table)[-1])
      for (const SchedulePass& pass : schedule_passes()) points.emplace_back(pass.name, pass.summary);
    points.emplace_back(each.name, each.summary);
  }
  return points;
}

Result<ShowPoint> find_show_point(std::string_view name) {
  for (const ShowStage& each : table)
    if (each.name == name) return ShowPoint{each.of_target, each.text};
  for (const SchedulePass& pass : schedule_passes())
    if (pass.name == name) return ShowPoint{true, [&pass](const Shown& shown) { return text_after(shown, pass); }};
  std::string known;
  for (const auto& [point, summary] : show_points()) known += (known.empty() ? "" : ", ") + std::string(point);
  return Error{Code::InvalidArgument, "--after: '" + std::string(name) + "' is none of " + known};
}

Result<std::string> show_code(const Shown& shown) {
  return text_of_lowered(shown,
                         [&](const Lowered& lowered) { return shown.target.listing(lowered.kernels, arch_of(shown)); });
}

}  // namespace trireme
