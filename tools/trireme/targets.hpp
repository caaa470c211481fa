// How options name targets.
#pragma once
#include <string>
#include <vector>

#include "program_options.hpp"
#include "schedule/kernel.hpp"
#include "targets/targets.hpp"

namespace trireme::cli {

// The table of targets, for help texts and for completion.
std::string target_help();  // "ptx, x86 or wasm"
std::vector<std::string> target_words();
std::string arch_help();
std::vector<std::string> arch_words();

}  // namespace trireme::cli
