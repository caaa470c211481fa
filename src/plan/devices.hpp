// The one table of devices. Tests, command line, benchmark and doctor loop over it; a new device is one line.
#pragma once
#include <string_view>
#include <vector>

#include "devices/device.hpp"

namespace trireme {

const std::vector<DeviceEntry>& devices();

// An entry of the table, or a further GPU: "cuda:1"; null for other names.
const DeviceEntry* find_device(std::string_view name);

}  // namespace trireme
