// Where programs come from: an operator's name, or the path of a .row file.
#pragma once
#include <string>
#include <string_view>

#include "ir/program.hpp"
#include "passes/passes.hpp"
#include "plan/check.hpp"

namespace trireme::cli {

bool is_file(std::string_view program);  // it has a '/' or ends in .row

// A program's text, as the file or the operator has it.
Result<std::string> load_text(const std::string& program);

// The program, its derived backward; errors in a file name the file.
Result<Program> load_program(const std::string& program);
Result<Program> load_backward(const std::string& program, const DifferentiateOptions& options = {});
Result<Prepared> load_problem(const Problem& problem);        // with samples
Result<Prepared> load_empty_problem(const Problem& problem);  // operands are zeros
Result<Prepared> load_layout(const Problem& problem);         // without memory, whatever the shape

}  // namespace trireme::cli
