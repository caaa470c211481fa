// The one table of devices. Tests, command line, benchmark and doctor loop over it; a new folder of devices is one
// line.
#pragma once
#include <string_view>
#include <vector>

#include "devices/device.hpp"

namespace trireme {

const std::vector<DeviceEntry>& devices();

// An entry of the table, or a further one of its families: "cuda:1"; null for other names.
const DeviceEntry* find_device(std::string_view name);

}  // namespace trireme
