#include "sources.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "language/parse.hpp"
#include "language/print.hpp"
#include "passes/passes.hpp"
#include "plan/ops.hpp"

namespace trireme::cli {
namespace {

// A file's text; empty for an operator's name. One byte more than a program may have is enough to refuse it.
Result<std::string> read_text(const std::string& program) {
  if (!is_file(program)) return std::string();
  std::ifstream file(program, std::ios::binary);
  std::string text(max_text_bytes + 1, '\0');
  if (!file || !(file.read(text.data(), static_cast<std::streamsize>(text.size())) || file.eof()))
    return Error{Code::InvalidArgument, program + ": " + std::strerror(errno)};
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) return Error{Code::InvalidProgram, program + ": the file is empty"};
  return text;
}

// As compilers do: FILE:LINE:COLUMN: message.
template <typename T>
Result<T> naming_the_file(const std::string& program, Result<T> result) {
  if (result || !is_file(program) || result.error().code != Code::InvalidProgram) return result;
  return Error{Code::InvalidProgram, program + ":" + result.error().message};
}

}  // namespace

bool is_file(std::string_view program) { return program.find('/') != program.npos || program.ends_with(".row"); }

Result<std::string> load_text(const std::string& program) {
  TRIREME_TRY(text, read_text(program));
  for (const OperatorText& each : operator_texts())
    if (text.empty() && each.name == program) return std::string(each.text);
  return text;
}

Result<Program> load_program(const std::string& program) {
  TRIREME_TRY(text, read_text(program));
  return naming_the_file(program, find_program(program, text));
}

Result<Program> load_backward(const std::string& program, const DifferentiateOptions& options) {
  TRIREME_TRY(forward, load_program(program));
  return naming_the_file(program, differentiate(forward, options));
}

Result<Prepared> load_problem(const Problem& problem) {
  TRIREME_TRY(text, read_text(problem.program));
  return naming_the_file(problem.program, prepare_problem(problem, text));
}

Result<Prepared> load_empty_problem(const Problem& problem) {
  TRIREME_TRY(text, read_text(problem.program));
  return naming_the_file(problem.program, prepare_problem(problem, text, Fill::Nothing));
}

Result<Prepared> load_layout(const Problem& problem) {
  TRIREME_TRY(text, read_text(problem.program));
  return naming_the_file(problem.program, prepare_problem(problem, text, Fill::NoMemory));
}

}  // namespace trireme::cli
