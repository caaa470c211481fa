// Lowered kernels on the interpreter: how the GPU's schedules are checked without a GPU.
#pragma once
#include "devices/device.hpp"

namespace trireme::lanes {

// Runs the kernels a machine would get, chosen by `config`. A team takes `row_block` rows one after the other
// (0: as the config says); where there are column sums the contract says how many.
Result<std::unique_ptr<Executable>> compile_with(const Program& program, const Config& config,
                                                 std::int64_t row_block = 0);

std::vector<DeviceEntry> devices();  // with the config an H200 would get

}  // namespace trireme::lanes
