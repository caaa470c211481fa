#include "plan/devices.hpp"

#include "devices/lanes/lanes_device.hpp"
#include "devices/reference_device.hpp"

namespace trireme {
namespace {

std::string always_there() { return {}; }

}  // namespace

const std::vector<DeviceEntry>& devices() {
  static const std::vector<DeviceEntry> table = {
      {"reference", always_there, compile_for_reference},
      {"lanes", always_there, lanes::compile},
  };
  return table;
}

}  // namespace trireme
