// Column sums into divided, wrapped and scalar results, on any device: its kernels compute what is summed, and the
// reference's own code sums it.
#pragma once
#include "devices/device.hpp"

namespace trireme {

// Compiles with `compile` alone where that can do the whole program.
Result<std::unique_ptr<Executable>> compose(const Program& program, const Facts& facts, const Compile& compile);

}  // namespace trireme
