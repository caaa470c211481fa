#include "plan/check.hpp"

#include <cstring>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "plan/digest.hpp"
#include "plan/ops.hpp"
#include "plan/remarks.hpp"
#include "plan/resolve.hpp"
#include "plan/samples.hpp"

namespace trireme {
namespace {

Result<std::string_view> find_text(std::string_view name, std::string_view file_text) {
  if (!file_text.empty()) return file_text;
  std::string known;
  for (const OperatorText& each : operator_texts()) {
    if (each.name == name) return each.text;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  return Error{Code::InvalidArgument, "no operator named '" + std::string(name) + "'; there are: " + known};
}

}  // namespace

Result<Program> find_program(std::string_view name, std::string_view file_text) {
  TRIREME_TRY(text, find_text(name, file_text));
  return parse(text);
}

Result<Prepared> prepare_problem(const Problem& problem, std::string_view file_text) {
  TRIREME_TRY(text, find_text(problem.program, file_text));
  TRIREME_TRY(remarks, parse_remarks(text));
  TRIREME_TRY(forward, parse(text));
  Prepared prepared{.problem = problem, .source = forward};
  if (problem.backward) {
    TRIREME_TRY(backward, differentiate(forward));
    prepared.source = backward;
  }
  TRIREME_TRY(binding, binding_of(problem, forward, prepared.source));
  TRIREME_TRY(bound, bind(prepared.source, binding));
  prepared.bound = std::move(bound);
  TRIREME_TRY(program, prepare(prepared.source, binding));
  prepared.program = program;
  TRIREME_TRY(buffers, make_buffers(program, problem.rows(), problem.columns(), problem.placements));
  prepared.buffers = std::move(buffers);
  for (std::size_t k = 0; k < program.operands.size(); ++k) {
    const Operand& operand = program.operands[k];
    double constant = 0;
    if (operand.constant) {
      std::optional<std::size_t> source = prepared.source.find_operand(operand.name);
      auto given = problem.constants.find(operand.name);
      constant = given != problem.constants.end()
                     ? given->second
                     : as_number(prepared.source, prepared.source.operands[*source].fallback).value_or(0);
    } else {
      Buffer& buffer = prepared.buffers.operands[k];
      SampleRange range = default_range(*operand.type);
      if (auto it = remarks.ranges.find(operand.name); it != remarks.ranges.end())
        range = it->second.at(problem.columns());
      fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, problem.seed, operand.name, range);
    }
    prepared.constants.push_back(constant);
  }
  prepared.operands = prepared.buffers.operand_arrays();
  prepared.results = prepared.buffers.result_arrays();
  poison_results(prepared);
  return prepared;
}

void poison_results(Prepared& prepared) {
  for (Buffer& buffer : prepared.buffers.results) std::memset(buffer.memory.data(), 0xA5, buffer.memory.size());
}

std::string digest_of(const Prepared& prepared) { return digest(prepared.buffers.results); }

}  // namespace trireme
