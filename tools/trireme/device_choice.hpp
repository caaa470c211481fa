// The devices a verb works on: all in the table, or those the user names.
#pragma once
#include <string>
#include <vector>

#include "command_line.hpp"
#include "devices/device.hpp"
#include "plan/check.hpp"

namespace trireme::cli {

// `names`: whole ("cpu:avx2") or the part before the colon ("cpu"); none: every device. In the order of the table.
Result<std::vector<const DeviceEntry*>> choose_devices(const std::vector<std::string>& names);

// What choose_devices() understands, for completion.
std::vector<std::string> device_words();

const DeviceEntry& reference_device();

// Compiles the problem's program and runs it once, on spoiled results.
Status run_once(const DeviceEntry& device, Prepared& prepared, const RunOptions& options);

// Adds --threads. What was asked for stands in `threads` afterwards, 0 if nothing: threads_asked() makes a number of
// it.
void add_threads(Command& verb, int& threads, const std::string& help);

}  // namespace trireme::cli
