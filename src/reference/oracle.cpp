#include "reference/oracle.hpp"

#include "ir/rewrite.hpp"
#include "layout/elements.hpp"
#include "math/reductions.hpp"
#include "reference/oracle_numbers.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {
namespace {

// A stopped gradient is its value.
Program without_stops(const Program& program) {
  return rewrite(program, [](Program& out, const Node& node, std::span<const NodeId> args) {
    return node.op == Op::StopGradient ? args[0] : copy_node(out, node, args);
  });
}

// Values of higher precision have other bits. Programs that work on bits are those after `expand`, read back from text.
Status can_judge(const Program& program) {
  for (NodeId id = 0; id < program.size(); ++id)
    if (Op op = program[id].op; op >= Op::BitsAdd && op <= Op::BitsShiftRight)
      return Error{Code::Unsupported, program.name + ": the oracle knows values, not the bits that '" +
                                          std::string(facts(op).name) + "' works on"};
  return Done{};
}

template <typename T>
[[gnu::noinline]] Status run_in(const Program& program, const Problem2d& problem, std::vector<OracleResult>& results) {
  OracleNumbers<T> numbers{program, results};
  return RowWalk(program, problem, numbers).run();
}

}  // namespace

double OracleElement::tolerance() const {
  auto distance = [&](double end) {
    return end == value ? 0 : static_cast<double>(std::fabs(end - value));
  };  // of infinities too
  return std::max(distance(lowest), distance(highest));
}

bool OracleElement::accepts(double stored) const {
  if (unknown) return true;
  if (std::isnan(lowest) || std::isnan(stored)) return std::isnan(lowest) && std::isnan(stored);
  return lowest <= stored && stored <= highest;
}

Result<std::vector<OracleResult>> run_oracle(const Program& bound, const Problem2d& problem) {
  Program program = expand_reductions(without_stops(bound));
  TRIREME_CHECK(can_judge(program));
  std::vector<OracleResult> results;
  const std::size_t operands = std::min(program.operands.size(), problem.arrays.size());
  std::vector<Array> arrays(problem.arrays.begin(), problem.arrays.begin() + static_cast<std::ptrdiff_t>(operands));
  for (const Output& result : program.results) {
    TRIREME_TRY(index, indexing(program, result.spread, problem.columns));
    OracleResult& made = results.emplace_back();
    const Array stored = arrays.size() < problem.arrays.size() ? problem.arrays[arrays.size()] : Array{};
    made.row_extent = row_entries(index.row, stored, problem.rows);
    made.column_extent = index.column.extent(problem.columns);
    made.elements.resize(made.row_extent * made.column_extent);
    for (OracleElement& each : made.elements) each.unknown = index.row.picked;  // rows that nobody picks
    if (result.accumulate && arrays.size() < problem.arrays.size()) arrays.push_back(stored);
    else arrays.push_back({.type = result.type.value_or(Type::F32)});
    arrays.back().table_rows = stored.table_rows;
  }
  Problem2d without_results = problem;
  without_results.arrays = arrays;
  TRIREME_CHECK(check_problem(program, without_results));
  ContractArithmetic arithmetic;
  TRIREME_CHECK(program.compute == Type::F64 ? run_in<double>(program, without_results, results)
                                             : run_in<float>(program, without_results, results));
  return results;
}

LargestError largest_error(std::string name, const OracleResult& oracle, const Array& stored) {
  LargestError largest{.result = std::move(name)};
  largest.elements = static_cast<std::int64_t>(oracle.elements.size());
  bool first = true;
  for (std::int64_t r = 0; r < oracle.row_extent; ++r)
    for (std::int64_t c = 0; c < oracle.column_extent; ++c) {
      const OracleElement& want = oracle.at(r, c);
      if (want.unknown) {
        ++largest.unknown;
        continue;
      }
      double got = value_at(stored, r, c);
      bool accepted = want.accepts(got), equal = got == want.value || (accepted && std::isnan(got));
      double error = equal ? 0 : static_cast<double>(std::fabs(got - want.value)), tolerance = want.tolerance();
      double worst = equal ? 0 : error / tolerance;
      if (!accepted && !(worst > 1)) worst = HUGE_VAL;
      if (accepted && !(worst <= 1)) worst = 1;  // an infinite end of the bounds
      largest.wrong += !accepted;
      if (!first && worst <= largest.worst) continue;
      first = false;
      largest.row = r, largest.column = c;
      largest.got = got, largest.want = want.value;
      largest.error = error, largest.tolerance = tolerance, largest.worst = worst;
    }
  return largest;
}

std::vector<LargestError> largest_errors(const Program& bound, std::span<const OracleResult> oracle,
                                         std::span<const Array> stored) {
  std::vector<LargestError> all;
  for (std::size_t k = 0; k < oracle.size(); ++k)
    all.push_back(largest_error(bound.results[k].name, oracle[k], stored[k]));
  return all;
}

}  // namespace trireme
