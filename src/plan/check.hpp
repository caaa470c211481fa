// A problem line made ready to run: program bound and expanded, memory there, filled with samples unless said.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "layout/buffers.hpp"
#include "problem/problem.hpp"
#include "reference/oracle.hpp"

namespace trireme {

struct Prepared {
  Problem problem;
  Program source;   // the program itself, or its derived backward
  Program bound;    // types, constants and absent operands fixed: what the oracle runs
  Program program;  // bound, simplified, expanded: what runs
  std::vector<double> constants;
  Buffers buffers;
  std::vector<Array> arrays;  // views of `buffers`, as Program::array counts them and kernels see them
  using Memory = decltype(Buffer::memory);
  std::map<std::size_t, Memory> before;  // of results that accumulate: their memory before a run

  std::span<Array> operands() { return std::span(arrays).first(program.operands.size()); }
  std::span<Array> results() { return std::span(arrays).subspan(program.operands.size()); }
  std::span<const Array> results() const { return std::span(arrays).subspan(program.operands.size()); }
  // The same as `bound` has them: what the oracle reads, and its results are compared with.
  std::vector<Array> elements() const {
    std::vector<Array> list = arrays;
    for (std::size_t k = 0; k < list.size(); ++k)
      if (const std::optional<Type> type = bound.array(k).type; type && is_packed(*type)) list[k] = buffer(k).array;
    return list;
  }
  std::vector<Array> result_elements() const {
    std::vector<Array> list = elements();
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(program.operands.size()));
    return list;
  }
  const Buffer& buffer(std::size_t array) const {
    const std::size_t operands = program.operands.size();
    return array < operands ? buffers.operands[array] : buffers.results[array - operands];
  }
  Problem2d view() const {
    return {.rows = problem.rows(), .columns = problem.columns(), .constants = constants, .arrays = arrays};
  }
};

// The program behind a name: an operator that comes with Trireme, or the text of a .row file.
Result<Program> find_program(std::string_view name, std::string_view file_text = {});

// `file_text`: the program's text where the problem names a file.
enum class Fill : std::uint8_t { Samples, Nothing, NoMemory };  // the last: arrays' layouts alone
Result<Prepared> prepare_problem(const Problem& problem, std::string_view file_text = {}, Fill fill = Fill::Samples);

// Spoils the results' memory, so that what a run leaves unwritten is seen; of those that accumulate brings back what
// was there.
void poison_results(Prepared& prepared);

std::string digest_of(const Prepared& prepared);

// Of the memory as it was before any run.
Result<std::vector<OracleResult>> oracle_of(const Prepared& prepared);

}  // namespace trireme
