#include "plan/settings.hpp"

#include <algorithm>

#include "plan/devices.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view cpu = "cpu:";

std::string joined(const Names& names, std::string_view last) {
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k)
    text += (k == 0 ? "" : k + 1 < names.size() ? ", " : std::string(last)) + names[k];
  return text;
}

// What TRIREME_ISA may say: devices of the CPU, without their family's name.
Names instruction_sets() {
  Names names;
  for (const DeviceEntry& each : devices())
    if (each.name.starts_with(cpu)) names.push_back(each.name.substr(cpu.size()));
  return names;
}

// What TRIREME_HIDE may say: all that kernels for them are emitted for.
Names hideable() {
  Names names;
  for (const Target* target : targets())
    for (std::string_view arch : target->common_archs)
      if (std::ranges::any_of(devices(), [&](const DeviceEntry& each) {
            return each.name.starts_with(cpu) && each.target == target->name;
          }))
        names.emplace_back(arch);
  return names;
}

}  // namespace

Status check_setting(const environment::Setting& setting) {
  TRIREME_CHECK(setting.check());
  const std::string_view name = setting.name;
  if (name == "TRIREME_ISA") {
    TRIREME_TRY(isa, environment::isa());
    const Names known = instruction_sets();
    if (!isa.empty() && !std::ranges::count(known, isa)) return environment::wrong(setting.name, joined(known, " or "));
  }
  if (name == "TRIREME_HIDE") {
    TRIREME_TRY(hidden, environment::hidden());
    const Names known = hideable();
    for (const std::string& each : hidden)
      if (!std::ranges::count(known, each)) return environment::wrong(setting.name, "a list of " + joined(known, ", "));
  }
  return Done{};
}

Status check_settings() {
  for (const environment::Setting& each : environment::settings()) TRIREME_CHECK(check_setting(each));
  return Done{};
}

}  // namespace trireme
