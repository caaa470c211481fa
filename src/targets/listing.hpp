// Listings for readers: assembler text with the kernel's structure as comments.
#pragma once
#include <string>
#include <string_view>

#include "schedule/kernel.hpp"

namespace trireme {

// What stands above an instruction's code: notes, loops and branches, and what is read and written; empty for others.
std::string comment_of(const Instr& instr, const Kernel& kernel);

// What stands in each slot, then the assembler's log, set in as the kernel's loops and branches nest.
std::string laid_out(const Kernel& kernel, std::string_view log);

}  // namespace trireme
