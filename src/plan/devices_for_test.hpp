// The devices of this machine that tests walk, by what they are, not by their names.
#pragma once
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "plan/devices.hpp"
#include "targets/targets.hpp"

namespace trireme {

inline bool is_reference(const DeviceEntry& device) { return &device == &devices()[0]; }

// TRIREME_TEST_DEVICES names the one device that is to be tested, where others have been tested elsewhere.
inline bool is_wanted(const DeviceEntry& device) {
  const char* only = std::getenv("TRIREME_TEST_DEVICES");
  return !only || device.name == only;
}

// One of each target and architecture that is here, and takes no more than `most_ms` for a small program; of the slow
// ones one of each target. Not the reference, which they are held to.
inline std::vector<const DeviceEntry*> devices_here(int most_ms = 1000) {
  std::vector<const DeviceEntry*> found;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const DeviceEntry& each : devices()) {
    if (is_reference(each) || !is_wanted(each) || !each.missing().empty() || each.about_ms() > most_ms) continue;
    const std::string_view arch = each.about_ms() < 100 ? each.arch : "";
    if (each.target.empty() || seen.insert({each.target, arch}).second) found.push_back(&each);
  }
  return found;
}

// Devices that are not tuned have the schedules of their target's machine, and what loads kernels as they are those of
// the first target.
inline Result<Machine> machine_of(const DeviceEntry& device) {
  if (device.machine) return device.machine();
  const Target* target = targets().front();
  if (!device.target.empty()) {
    TRIREME_TRY(found, find_target(device.target));
    target = found;
  }
  return target->machine(device.arch.empty() ? target->default_arch : device.arch);
}

// Those that run on the host's threads, the fastest first, whether here or not.
inline std::vector<const DeviceEntry*> threaded_devices() {
  std::vector<const DeviceEntry*> found;
  for (const DeviceEntry& each : devices())
    if (each.threads) found.push_back(&each);
  return found;
}

// Those of them that are here, and why none is.
inline std::vector<const DeviceEntry*> cpus() {
  std::vector<const DeviceEntry*> found = threaded_devices();
  std::erase_if(found, [](const DeviceEntry* each) { return !each->missing().empty(); });
  return found;
}
inline std::string no_cpu() { return cpus().empty() ? threaded_devices().back()->missing() : ""; }

}  // namespace trireme
