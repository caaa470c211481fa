// The device that is always there: the contract, executed literally.
#pragma once
#include "devices/device.hpp"

namespace trireme {

std::vector<DeviceEntry> reference_devices();

}  // namespace trireme
