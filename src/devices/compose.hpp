// Column sums into divided, wrapped and scalar results, on any device: its kernels compute what is summed, and the host
// sums it.
#pragma once
#include "devices/device.hpp"

namespace trireme {

// A program whose kernels can do everything, and the results whose place its terms take.
struct WithoutSums {
  Program program;
  Facts facts;
  std::vector<std::size_t> summed;  // results: [i,j] of the compute type now, what is to be summed
};
WithoutSums without_sums(const Program& program, const Facts& facts);

// Compiles with `compile` alone where that can do the whole program.
Result<std::unique_ptr<Executable>> compose(const Program& program, const Facts& facts, const Compile& compile);

}  // namespace trireme
