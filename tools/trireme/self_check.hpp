// Whether a device keeps the contract where hardware is tempted to break it: contraction, signed zeros, subnormals,
// infinities and NaNs, in every combination.
#pragma once
#include <string>

#include "devices/device.hpp"

namespace trireme::cli {

// Empty if every bit is the reference's, else what differs first.
Result<std::string> self_test(const DeviceEntry& device);

}  // namespace trireme::cli
