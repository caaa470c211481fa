#include "targets.hpp"

#include <fmt/format.h>

#include "devices/compose.hpp"
#include "schedule/lower.hpp"

namespace trireme::cli {
namespace {

// Column sums into divided, wrapped and scalar results are no part of a program's own kernels.
Status check_sums(const BoundProgram& bound) {
  const Program& program = bound.prepared.program;
  std::string names, options;
  for (std::size_t r : without_sums(program, bound.facts).summed) {
    names += (names.empty() ? "" : ", ") + program.results[r].name;
    options += " --absent " + program.results[r].name;
  }
  if (names.empty()) return Done{};
  return Error{Code::Unsupported, fmt::format("{} sums {} beside its kernels: plans, run and verify do that; here, "
                                              "leave it out with{}",
                                              program.name, names, options)};
}

}  // namespace

std::string target_help() {
  std::string text;
  const auto all = targets();
  for (std::size_t k = 0; k < all.size(); ++k)
    text += fmt::format("{}{}", k == 0 ? "" : k + 1 < all.size() ? ", " : " or ", all[k]->name);
  return text;
}

std::vector<std::string> target_words() {
  std::vector<std::string> words;
  for (const Target* each : targets()) words.emplace_back(each->name);
  return words;
}

std::string arch_help() {
  std::string text;
  for (const Target* each : targets())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", each->name, each->archs);
  return text;
}

std::vector<std::string> arch_words() {
  std::vector<std::string> words;
  for (const Target* each : targets()) words.insert(words.end(), each->common_archs.begin(), each->common_archs.end());
  return words;
}

Result<Lowered> lower_for(const BoundProgram& bound, const Target& target, std::string arch) {
  if (arch.empty()) arch = target.default_arch;
  TRIREME_TRY(machine, target.machine(arch));
  TRIREME_CHECK(check_sums(bound));
  TRIREME_TRY(config, config_for(bound.prepared.program, machine, bound.facts));
  TRIREME_TRY(kernels, lower(bound.prepared.program, config));
  return Lowered{target, std::move(arch), config, std::move(kernels)};
}

std::string print(const Lowered& lowered) {
  std::string text = fmt::format("config: {}\n\n{}", print(lowered.config), print(lowered.kernels.rows));
  for (const Kernel& kernel : lowered.kernels.columns) text += "\n" + print(kernel);
  return text;
}

}  // namespace trireme::cli
