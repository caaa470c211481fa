#include "plan/check.hpp"

#include <algorithm>
#include <cstring>

#include "language/diagnostic.hpp"
#include "language/parse.hpp"
#include "plan/digest.hpp"
#include "plan/ops.hpp"
#include "plan/resolve.hpp"

namespace trireme {
namespace {

Result<std::string_view> find_text(std::string_view name, std::string_view file_text) {
  if (!file_text.empty()) return file_text;
  std::string known;
  Suggestion suggestion(name);
  for (const OperatorText& each : operator_texts()) {
    if (each.name == name) return each.text;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
    suggestion.consider(each.name);
  }
  std::string advice = suggestion.text().empty() ? "; there are: " + known : suggestion.text();
  return Error{Code::InvalidArgument, "no operator named '" + std::string(name) + "'" + advice};
}

}  // namespace

Result<Program> find_program(std::string_view name, std::string_view file_text) {
  TRIREME_TRY(text, find_text(name, file_text));
  return parse(text);
}

Result<Prepared> prepare_problem(const Problem& problem, std::string_view file_text, Fill fill) {
  TRIREME_TRY(text, find_text(problem.program, file_text));
  TRIREME_TRY(resolved, resolve(problem, text));
  Backing backing = fill == Fill::NoMemory ? Backing::None : Backing::Memory;
  TRIREME_TRY(buffers, fill == Fill::Samples ? sampled_buffers(resolved) : empty_buffers(resolved, backing));
  Prepared prepared{.problem = problem,
                    .source = std::move(resolved.program),
                    .bound = std::move(resolved.bound),
                    .program = std::move(resolved.expanded),
                    .constants = std::move(resolved.constants),
                    .buffers = std::move(buffers)};
  prepared.arrays = prepared.buffers.arrays();
  poison_results(prepared);
  return prepared;
}

void poison_results(Prepared& prepared) {
  for (Buffer& buffer : prepared.buffers.results)
    std::fill(buffer.memory.begin(), buffer.memory.end(), decltype(buffer.memory)::value_type{0xA5});
}

std::string digest_of(const Prepared& prepared) { return digest(prepared.buffers.results); }

}  // namespace trireme
