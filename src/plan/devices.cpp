#include "plan/devices.hpp"

#include <map>
#include <mutex>

#include "devices/cpu/aarch64/devices.hpp"
#include "devices/cpu/x86/devices.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "devices/fork_mutex.hpp"
#include "devices/lanes/lanes_device.hpp"
#include "devices/reference_device.hpp"
#include "devices/wasm/wasm_device.hpp"

namespace trireme {

namespace {

std::vector<DeviceEntry> (*const families[])() = {
    reference_devices,     //
    cpu::x86_devices,      //
    cpu::aarch64_devices,  //
    cuda::devices,         //
    wasm::devices,         //
    lanes::devices,        //
};

}  // namespace

const std::vector<DeviceEntry>& devices() {
  static const std::vector<DeviceEntry> table = [] {
    std::vector<DeviceEntry> all;
    for (auto* entries : families)
      for (DeviceEntry& each : entries()) all.push_back(std::move(each));
    return all;
  }();
  return table;
}

const DeviceEntry* find_device(std::string_view name) {
  for (const DeviceEntry& entry : devices())
    if (entry.name == name) return &entry;
  struct Further {
    ForkMutex mutex;
    std::map<std::string, DeviceEntry, std::less<>> entries;
  };
  static auto* further = new Further;  // never destroyed: plans may outlive main
  for (const DeviceEntry& entry : devices()) {
    if (!entry.further || !name.starts_with(entry.name + ":")) continue;
    std::optional<DeviceEntry> made = entry.further(name.substr(entry.name.size() + 1));
    if (!made) continue;
    if (made->name == entry.name) return &entry;
    std::lock_guard lock(further->mutex);
    return &further->entries.try_emplace(made->name, *made).first->second;
  }
  return nullptr;
}

}  // namespace trireme
