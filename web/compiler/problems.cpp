// Problems with memory of their own, which JavaScript reads and writes where it lies.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "devices/arguments.hpp"
#include "devices/lanes/lanes_device.hpp"
#include "plan/check.hpp"
#include "plan/difference.hpp"
#include "reference/oracle.hpp"
#include "reference/reference.hpp"
#include "verbs.hpp"

namespace trireme::web {
namespace {

std::map<int, std::unique_ptr<Prepared>>& opened() {
  static std::map<int, std::unique_ptr<Prepared>> problems;
  return problems;
}
int next_number = 1;

Result<Prepared*> find(std::string_view word) {
  int number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  const auto found = opened().find(number);
  if (found == opened().end()) return Error{Code::InvalidArgument, fmt::format("no problem '{}' is open", word)};
  return found->second.get();
}

Object array_of(std::string_view name, const Buffer& buffer) {
  return Object()
      .text("name", name)
      .text("type", trireme::name(buffer.array.type))
      .whole("rows", buffer.row_extent)
      .whole("columns", buffer.column_extent)
      .whole("at", static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(buffer.array.data)));
}

}  // namespace

Result<Answer> open_problem(Words words) {
  TRIREME_TRY(problem, parse_problem(words[1]));
  // Memory that is refused ends in a trap: what cannot fit is refused before.
  constexpr std::int64_t most_elements = std::int64_t{1} << 26;
  std::int64_t rows = problem.rows();
  for (auto [name, placement] : problem.placements) {
    rows = std::max(rows, std::exchange(placement.rows, Placement{}.rows));  // of a table
    if (placement != Placement{}) return Error{Code::Unsupported, fmt::format("'{}': arrays have no gaps here", name)};
  }
  if (rows > most_elements / std::max<std::int64_t>(problem.columns(), 1))
    return Error{Code::Unsupported, fmt::format("more than {} elements are too many here", most_elements)};
  TRIREME_TRY(prepared, prepare_problem(problem, words[0]));
  Object object;
  object.whole("number", next_number).text("line", print(problem)).whole("rows", problem.rows());
  object.whole("columns", problem.columns());
  std::string operands, results;
  for (std::size_t k = 0; k < prepared.program.operands.size(); ++k) {
    const Operand& operand = prepared.program.operands[k];
    operands += operands.empty() ? "" : ",";
    operands += operand.constant ? Object().text("name", operand.name).number("constant", prepared.constants[k]).done()
                                 : array_of(operand.name, prepared.buffers.operands[k]).done();
  }
  for (std::size_t k = 0; k < prepared.program.results.size(); ++k)
    results += (k ? "," : "") + array_of(prepared.program.results[k].name, prepared.buffers.results[k]).done();
  object.raw("operands", "[" + operands + "]").raw("results", "[" + results + "]");
  opened()[next_number++] = std::make_unique<Prepared>(std::move(prepared));
  return Answer{object.done()};
}

Result<Answer> run_problem(Words words) {
  TRIREME_TRY(prepared, find(words[0]));
  poison_results(*prepared);
  if (words[1] == "reference") {
    TRIREME_CHECK(run_reference(prepared->program, prepared->view()));
  } else if (words[1] == "lanes") {
    TRIREME_TRY(compiled, lanes::devices()[0].compile(prepared->program, facts_of(prepared->program, prepared->view())));
    TRIREME_CHECK(compiled->run(prepared->view(), {}));
  } else {
    return Error{Code::InvalidArgument, fmt::format("'{}' is none of reference, lanes", words[1])};
  }
  return Answer{Object().text("digest", digest_of(*prepared)).done()};
}

// The bytes: of every result in order, of every element value, lowest and highest as f64 (NaN where nothing is known).
Result<Answer> ask_oracle(Words words) {
  TRIREME_TRY(prepared, find(words[0]));
  TRIREME_TRY(oracle, oracle_of(*prepared));
  const std::vector<LargestError> errors = largest_errors(prepared->bound, oracle, prepared->result_elements());
  std::size_t k = 0;
  Answer answer{array(errors, [&](const LargestError& each) {
    return Object()
        .text("name", each.result)
        .text("element", element_name(prepared->bound.results[k++], each.row, each.column))
        .number("got", each.got)
        .number("want", static_cast<double>(each.want))
        .number("error", each.error)
        .number("bound", each.tolerance)
        .whole("wrong", each.wrong)
        .whole("unknown", each.unknown)
        .whole("elements", each.elements)
        .done();
  })};
  std::vector<double> values;
  for (const OracleResult& result : oracle)
    for (const OracleElement& each : result.elements) {
      const double nothing = std::nan("");
      values.push_back(each.unknown ? nothing : static_cast<double>(each.value));
      values.push_back(each.unknown ? nothing : each.lowest);
      values.push_back(each.unknown ? nothing : each.highest);
    }
  answer.bytes.resize(values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(answer.bytes.data(), values.data(), answer.bytes.size());
  return answer;
}

Result<Answer> close_problem(Words words) {
  TRIREME_TRY(prepared, find(words[0]));
  (void)prepared;
  int number = 0;
  std::from_chars(words[0].data(), words[0].data() + words[0].size(), number);
  opened().erase(number);
  return Answer{"{}"};
}

}  // namespace trireme::web
