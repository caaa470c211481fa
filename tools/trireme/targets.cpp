#include "targets.hpp"

#include <fmt/format.h>

#include "schedule/lower.hpp"

namespace trireme::cli {
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
  TRIREME_TRY(config, config_for(bound.prepared.program, machine, bound.facts));
  TRIREME_TRY(kernels, lower(bound.prepared.program, config));
  return Lowered{target, std::move(arch), config, std::move(kernels)};
}

std::string print(const Lowered& lowered) {
  std::string text = fmt::format("config: {}\n\n{}", print(lowered.config), print(lowered.kernels.rows));
  for (auto* list : {&lowered.kernels.before, &lowered.kernels.columns})
    for (const Kernel& kernel : *list) text += "\n" + print(kernel);
  return text;
}

}  // namespace trireme::cli
