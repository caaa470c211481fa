// The device that is always there: the contract, executed literally.
#pragma once
#include "devices/device.hpp"

namespace trireme {

Result<std::unique_ptr<Executable>> compile_for_reference(const Program& program, const Facts& facts);

}  // namespace trireme
