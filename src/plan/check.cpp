#include "plan/check.hpp"

#include <algorithm>
#include <cstring>

#include "language/diagnostic.hpp"
#include "language/parse.hpp"
#include "plan/ops.hpp"
#include "problem/digest.hpp"
#include "problem/resolve.hpp"

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
  for (std::size_t k = 0; k < prepared.bound.results.size(); ++k)
    if (prepared.bound.results[k].accumulate) prepared.before.emplace(k, prepared.buffers.results[k].memory);
  poison_results(prepared);
  return prepared;
}

void poison_results(Prepared& prepared) {
  for (std::size_t k = 0; k < prepared.buffers.results.size(); ++k) {
    auto& memory = prepared.buffers.results[k].memory;
    if (auto before = prepared.before.find(k); before != prepared.before.end())
      std::copy(before->second.begin(), before->second.end(), memory.begin());
    else std::fill(memory.begin(), memory.end(), std::byte{0xA5});
  }
}

Result<std::vector<OracleResult>> oracle_of(const Prepared& prepared) {
  std::vector<Array> arrays = prepared.elements();
  for (const auto& [k, memory] : prepared.before) {
    Array& array = arrays[prepared.program.array_of_result(k)];
    const auto offset = static_cast<std::byte*>(array.data) - prepared.buffers.results[k].memory.data();
    array.data = const_cast<std::byte*>(memory.data()) + offset;  // only read
  }
  Problem2d problem = prepared.view();
  problem.arrays = arrays;
  return run_oracle(prepared.bound, problem);
}

std::string digest_of(const Prepared& prepared) { return digest(prepared.buffers.results); }

}  // namespace trireme
