#include "language/diagnostic.hpp"
#include "plan/devices.hpp"
#include "plan/settings.hpp"
#include "support/environment.hpp"
#include "support/out_of_memory.hpp"
#include "trireme/device.hpp"

namespace trireme {

std::vector<Device::Listed> Device::list() {
  std::vector<Listed> listed;
  for (const DeviceEntry& entry : devices()) listed.push_back({entry.name, entry.missing()});
  return listed;
}

Result<Device> Device::cpu() {
  return or_out_of_memory([&]() -> Result<Device> {
    TRIREME_CHECK(check_settings());
    TRIREME_TRY(isa, environment::isa());
    if (!isa.empty()) {
      Result<Device> device = named("cpu:" + isa);
      if (device) return Device(device->entry(), "TRIREME_ISA=" + isa + " says so");
      return Error{device.error().code, "TRIREME_ISA=" + isa + ": " + device.error().message};
    }
    std::string passed_over;
    for (const DeviceEntry& entry : devices()) {  // widest first
      if (!entry.name.starts_with("cpu:")) continue;
      std::string missing = entry.missing();
      if (missing.empty()) return Device(entry, "the widest instructions that go here" + passed_over);
      passed_over += "; " + entry.name + ": " + missing;
    }
    return Device(devices()[0], "nothing faster goes here" + passed_over);
  });
}

Device Device::reference() { return Device(devices()[0]); }

Result<Device> Device::cuda(int ordinal) {
  return or_out_of_memory([&] { return named("cuda:" + std::to_string(ordinal)); });
}

Result<Device> Device::named(std::string_view name) {
  return or_out_of_memory([&]() -> Result<Device> {
    if (name == "cpu") return cpu();
    TRIREME_CHECK(check_settings());
    if (const DeviceEntry* entry = find_device(name)) {
      std::string missing = entry->missing();
      if (missing.empty()) return Device(*entry);
      return Error{Code::NoDevice, entry->name + ": " + missing};
    }
    std::string known = "cpu";
    Suggestion suggestion(name);
    for (const DeviceEntry& entry : devices()) {
      known += ", " + entry.name;
      suggestion.consider(entry.name);
    }
    return Error{Code::NoDevice,
                 "no device named '" + std::string(name) + "'" + suggestion.text() + "; there are: " + known};
  });
}

const std::string& Device::name() const { return entry_->name; }

}  // namespace trireme
