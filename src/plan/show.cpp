#include "plan/show.hpp"

#include "language/print.hpp"
#include "passes/advise.hpp"
#include "passes/passes.hpp"
#include "schedule/lower.hpp"
#include "schedule/stages.hpp"

namespace trireme {
namespace {

std::string_view arch_of(const Shown& shown) {
  return shown.arch.empty() ? shown.target.default_arch : std::string_view(shown.arch);
}

Result<Lowered> lowered(const Shown& shown) {
  TRIREME_TRY(machine, shown.target.machine(arch_of(shown)));
  return lower_for(shown.prepared.program, machine, shown.facts);
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
       TRIREME_TRY(kernels, lowered(shown));
       return print(kernels);
     }},
};

}  // namespace

std::string show_program(const Program& program) {
  std::string text = print(program);
  for (const std::string& remark : advise(program)) text += "# " + remark + "\n";
  return text;
}

std::span<const ShowStage> show_stages() { return table; }

Result<const ShowStage*> find_show_stage(std::string_view name) {
  std::string known;
  for (const ShowStage& each : table) {
    if (each.name == name) return &each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  return Error{Code::InvalidArgument, "--after: '" + std::string(name) + "' is none of " + known};
}

Result<std::string> show_code(const Shown& shown) {
  TRIREME_TRY(kernels, lowered(shown));
  return shown.target.listing(kernels.kernels, arch_of(shown));
}

}  // namespace trireme
