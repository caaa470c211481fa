// The machine a verb runs on.
#pragma once
#include <string>

namespace trireme::cli {

std::string processor_name();

}  // namespace trireme::cli
