// The verbs of the command line, one file each.
#pragma once
#include "command_line.hpp"

namespace trireme::cli {

Command list_verb();
Command show_verb();
Command emit_verb();
Command run_verb();
Command check_verb();
Command drift_verb();
Command verify_verb();
Command bench_verb();
Command tune_verb();
Command jit_verb();
Command cache_verb();
Command doctor_verb();

// These describe all verbs; `line` must live as long as they.
Command completion_verb(const CommandLine& line);
Command man_verb(const CommandLine& line);

}  // namespace trireme::cli
