// Compiled with -fno-exceptions into the same program: Result::value() is one function in both files.
#include <trireme/program.hpp>

std::string name_of_a_wrong_program() { return trireme::RowProgram::parse("wrong").value().name(); }
