// The one table of devices. Tests, command line, benchmark and doctor loop over it; a new device is one line.
#pragma once
#include <vector>

#include "devices/device.hpp"

namespace trireme {

const std::vector<DeviceEntry>& devices();

}  // namespace trireme
