// Every operator of ops/ against a definition of its own in plain double arithmetic: its results on every `#: try`
// line, and its derived gradients against central differences of the definition.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "plan/check.hpp"
#include "plan/definitions_for_test.hpp"
#include "plan/ops.hpp"
#include "problem/remarks.hpp"
#include "reference/oracle.hpp"

namespace trireme {
namespace {

Prepared prepared_for(const Problem& problem) {
  Result<Prepared> prepared = prepare_problem(problem);
  EXPECT_TRUE(prepared) << prepared.error().message;
  return std::move(*prepared);
}

Problem problem_of(const std::string& line) {
  Result<Problem> problem = parse_problem(line);
  EXPECT_TRUE(problem) << problem.error().message;
  return *problem;
}

Matrix read(const Buffer& buffer) {
  Matrix made{buffer.row_extent, buffer.column_extent, {}};
  for (std::int64_t r = 0; r < made.rows; ++r)
    for (std::int64_t c = 0; c < made.columns; ++c)
      made.values.push_back(load_f64(buffer.array.type, buffer.array.entry(r, c)));
  return made;
}

void write(const Matrix& values, const Buffer& buffer) {
  ASSERT_EQ(values.rows, buffer.row_extent);
  ASSERT_EQ(values.columns, buffer.column_extent);
  for (std::int64_t r = 0; r < values.rows; ++r)
    for (std::int64_t c = 0; c < values.columns; ++c)
      store_f64(buffer.array.type, buffer.array.entry(r, c), values.at(r, c));
}

// The forward's operands and constants as a definition sees them.
Given given_by(const Prepared& forward) {
  Given given{forward.problem.rows(), forward.problem.columns(), {}, forward.problem.constants, {}};
  const bool narrow = forward.program.compute == Type::F32;  // constants are rounded to it
  for (const Operand& operand : forward.source.operands)
    if (operand.constant && operand.fallback != no_node)
      given.constants.try_emplace(operand.name, *as_number(forward.source, operand.fallback));
  for (auto& [name, value] : given.constants)
    if (narrow) value = static_cast<float>(value);
  for (std::size_t k = 0; k < forward.program.operands.size(); ++k) {
    const Operand& operand = forward.program.operands[k];
    if (operand.constant) continue;
    given.arrays[operand.name] = read(forward.buffers.operands[k]);
    given.types[operand.name] = *operand.type;
  }
  for (const Output& result : forward.program.results) given.types[result.name] = *result.type;
  return given;
}

std::map<std::string, Matrix> defined(const OperatorDefinition& definition, const Given& given) {
  std::map<std::string, Matrix> results;
  for (std::int64_t i = 0; i < given.rows; ++i) {
    RowResults row;
    definition.define(Row{given, i, given.columns}, row);
    for (const auto& [name, values] : row) {
      Matrix& result = results[name];
      result.rows = given.rows, result.columns = static_cast<std::int64_t>(values.size());
      result.values.insert(result.values.end(), values.begin(), values.end());
    }
  }
  return results;
}

const OperatorDefinition* definition_of(std::string_view name) {
  for (const OperatorDefinition& each : operator_definitions())
    if (each.name == name) return &each;
  return nullptr;
}

// A definition is welcome, and not demanded: adding an operator is adding one file. The oracle judges all.
TEST(Operators, all_have_comments_and_problems) {
  for (const OperatorDefinition& each : operator_definitions())
    EXPECT_TRUE(find_program(each.name)) << each.name << " is defined, but there is no such operator";
  EXPECT_GE(operator_definitions().size(), 22u);
  for (const OperatorText& each : operator_texts()) {
    EXPECT_TRUE(each.text.starts_with("# ")) << each.name << ": the file begins with a comment that says what it is";
    std::size_t tries = parse_remarks(each.text).value().tries.size();
    EXPECT_TRUE(tries >= 2 && tries <= 4) << each.name;
    EXPECT_EQ(find_program(each.name).value().name, each.name);
  }
}

// The reference's result and the definition's, rounded to storage, both lie within the oracle's bound of the truth:
// they are at most two bounds apart.
void compare_with_definition(const OperatorDefinition& definition, const std::string& line) {
  SCOPED_TRACE("rerun: trireme verify \"" + line + "\"");
  Prepared prepared = prepared_for(problem_of(line));
  Status status = run_reference(prepared.program, prepared.view());
  ASSERT_TRUE(status) << status.error().message;
  std::vector<OracleResult> oracle = oracle_of(prepared).value();
  for (const LargestError& each : largest_errors(prepared.bound, oracle, prepared.result_elements())) {
    EXPECT_TRUE(each.fine()) << each.result << " " << each.row << "," << each.column << ": " << each.got;
    EXPECT_EQ(each.unknown, 0) << each.result;
  }
  std::map<std::string, Matrix> want = defined(definition, given_by(prepared));
  EXPECT_EQ(want.size(), prepared.program.results.size());
  for (std::size_t k = 0; k < prepared.program.results.size(); ++k) {
    const Output& result = prepared.program.results[k];
    Matrix got = read(prepared.buffers.results[k]);
    const Matrix& right = want.at(result.name);
    ASSERT_EQ(got.values.size(), right.values.size()) << result.name;
    double worst = 0;
    std::string where;
    for (std::int64_t r = 0; r < got.rows; ++r)
      for (std::int64_t c = 0; c < got.columns; ++c) {
        double error = std::fabs(got.at(r, c) - through_type(*result.type, right.at(r, c)));
        double excess = error - 2 * oracle[k].at(r, c).tolerance();
        if (excess <= worst) continue;
        worst = excess;
        where = result.name + "[" + std::to_string(r) + "," + std::to_string(c) + "] got " +
                std::to_string(got.at(r, c)) + " want " + std::to_string(right.at(r, c));
      }
    EXPECT_EQ(worst, 0) << where;
  }
}

TEST(Operators, give_what_they_are_defined_as) {
  for (const OperatorText& each : operator_texts())
    if (const OperatorDefinition* definition = definition_of(each.name)) {
      Remarks remarks = parse_remarks(each.text).value();
      for (const std::string& line : remarks.tries)
        compare_with_definition(*definition, std::string(each.name) + " " + line);
    }
}

// The sum of all results, weighted by their gradients.
double weighted(const OperatorDefinition& definition, const Given& given,
                const std::map<std::string, Matrix>& weights) {
  double total = 0;
  for (const auto& [name, values] : defined(definition, given))
    if (auto it = weights.find("d" + name); it != weights.end())
      for (std::size_t k = 0; k < values.values.size(); ++k) total += values.values[k] * it->second.values[k];
  return total;
}

// `recomputed`: the backward is given no saved result.
void check_gradients(const OperatorDefinition& definition, const std::string& line, bool recomputed) {
  SCOPED_TRACE(line + (recomputed ? ", saved results recomputed" : ""));
  Prepared forward = prepared_for(problem_of(line));
  Given given = given_by(forward);
  std::map<std::string, Matrix> results = defined(definition, given);
  Problem problem = problem_of(line + " backward");
  if (recomputed)
    for (const auto& [name, values] : results) problem.absent.insert(name);
  Prepared backward = prepared_for(problem);
  std::map<std::string, Matrix> weights;
  for (std::size_t k = 0; k < backward.program.operands.size(); ++k) {
    const Operand& operand = backward.program.operands[k];
    const Buffer& buffer = backward.buffers.operands[k];
    if (operand.constant) continue;
    if (auto it = given.arrays.find(operand.name); it != given.arrays.end()) write(it->second, buffer);
    else if (auto saved = results.find(operand.name); saved != results.end()) write(saved->second, buffer);
    else weights[operand.name] = read(buffer);
  }
  EXPECT_FALSE(weights.empty());
  Status status = run_reference(backward.program, backward.view());
  ASSERT_TRUE(status) << status.error().message;
  if (results.contains("q")) given.arrays["scale"] = results["scale"];  // stop_gradient(scale)
  for (std::size_t k = 0; k < backward.program.results.size(); ++k) {
    const std::string& name = backward.program.results[k].name;
    Matrix got = read(backward.buffers.results[k]);
    auto operand = given.arrays.find(name.substr(1));
    if (operand == given.arrays.end()) continue;  // the gradient of a default
    Matrix want = got;
    double largest = 0;
    for (std::size_t entry = 0; entry < want.values.size(); ++entry) {
      double& moved = operand->second.values[entry];
      double value = moved, step = 1e-5 * std::fmax(1, std::fabs(value));
      moved = value + step;
      double above = weighted(definition, given, weights);
      moved = value - step;
      double below = weighted(definition, given, weights);
      moved = value;
      want.values[entry] = (above - below) / (2 * step);
      largest = std::fmax(largest, std::fabs(want.values[entry]));
    }
    for (std::size_t entry = 0; entry < want.values.size(); ++entry)
      EXPECT_NEAR(got.values[entry], want.values[entry], 1e-6 * largest) << name << "[" << entry << "]";
  }
}

TEST(Operators, have_the_gradients_of_their_definitions) {
  for (const OperatorDefinition& definition : operator_definitions())
    for (const std::string& line : definition.gradient_lines)
      for (bool recomputed : {false, true}) {
        std::size_t blank = line.find(' ');
        std::string rest = blank == line.npos ? "" : line.substr(blank);
        const Program program = find_program(definition.name).value();
        const std::string typed = program.find_operand("x") ? "x" : program.operands[0].name;
        const std::string shape = definition.name + " " + line.substr(0, blank);
        check_gradients(definition, shape + " " + typed + "=f64" + rest, recomputed);
      }
}

// Probabilities of 0 count for nothing, in results and in gradients: masked logits, parts without keys.
TEST(Operators, take_logarithms_of_nothing) {
  struct Case {
    std::string line;
    std::vector<std::pair<const char*, std::int64_t>> nothing;  // entries of the first row that are -inf
  };
  for (const Case& each : {Case{"logprob_entropy 2x7 x=f64 target=i32", {{"x", 1}, {"x", 4}}},
                           Case{"js_div 2x5 log_q=f64", {{"log_q", 0}, {"log_q", 1}, {"log_p", 1}, {"log_p", 2}}},
                           Case{"merge_attention_states 2x5 a=f64", {{"lse_a", 0}, {"lse_b", 0}}},
                           Case{"merge_attention_states 2x5 a=f64", {{"lse_b", 0}}}}) {
    SCOPED_TRACE(each.line);
    Prepared forward = prepared_for(problem_of(each.line));
    for (const auto& [name, column] : each.nothing)
      store_f64(Type::F64, forward.buffers.operands[*forward.program.find_operand(name)].array.entry(0, column),
                -HUGE_VAL);
    ASSERT_TRUE(run_reference(forward.program, forward.view()));
    Given given = given_by(forward);
    if (auto target = given.arrays.find("target"); target != given.arrays.end()) {
      EXPECT_NE(target->second.at(0, 0), 1);
      EXPECT_NE(target->second.at(0, 0), 4);
    }
    std::map<std::string, Matrix> want = defined(*definition_of(forward.source.name), given);
    for (std::size_t k = 0; k < forward.program.results.size(); ++k) {
      const Matrix got = read(forward.buffers.results[k]), &right = want.at(forward.program.results[k].name);
      for (std::size_t entry = 0; entry < got.values.size(); ++entry) {
        if (got.values[entry] == right.values[entry]) continue;  // -inf, too
        EXPECT_NEAR(got.values[entry], right.values[entry], 1e-12) << forward.program.results[k].name << entry;
      }
    }
    Prepared backward = prepared_for(problem_of(each.line + " backward"));
    for (std::size_t k = 0; k < backward.program.operands.size(); ++k) {
      const std::string& name = backward.program.operands[k].name;
      if (given.arrays.contains(name)) write(given.arrays.at(name), backward.buffers.operands[k]);
      else if (want.contains(name)) write(want.at(name), backward.buffers.operands[k]);
    }
    ASSERT_TRUE(run_reference(backward.program, backward.view()));
    for (std::size_t k = 0; k < backward.program.results.size(); ++k)
      for (double value : read(backward.buffers.results[k]).values)
        EXPECT_TRUE(std::isfinite(value)) << backward.program.results[k].name;
  }
}

// The f32 (or narrower) run of every problem line, both directions, lies where the oracle says it must.
TEST(Operators, lie_within_the_oracles_bounds) {
  for (const OperatorText& each : operator_texts()) {
    Remarks remarks = parse_remarks(each.text).value();
    for (const std::string& attempt : remarks.tries)
      for (const char* direction : {"", " backward"}) {
        std::string line = std::string(each.name) + " " + attempt + direction;
        Prepared prepared = prepared_for(problem_of(line));
        ASSERT_TRUE(run_reference(prepared.program, prepared.view())) << line;
        std::vector<OracleResult> oracle = oracle_of(prepared).value();
        for (const LargestError& error : largest_errors(prepared.bound, oracle, prepared.result_elements()))
          EXPECT_TRUE(error.fine()) << line << " " << error.result << "[" << error.row << "," << error.column
                                    << "] got " << error.got << " want " << static_cast<double>(error.want);
      }
  }
}

// Operands have none where the file says why: they are integers (labels, masks, what picks rows), seeds, stopped, or
// tables whose rows are picked.
TEST(Operators, have_gradients_for_every_operand) {
  int missing = 0;
  for (const OperatorText& each : operator_texts()) {
    const Program forward = find_program(each.name).value(), backward = differentiate(forward).value();
    const Remarks remarks = parse_remarks(each.text).value();
    for (const Operand& operand : forward.operands) {
      if (operand.constant) continue;
      const auto range = remarks.ranges.find(operand.name);
      const bool integer = range != remarks.ranges.end() && range->second.integer;
      const bool stopped = each.text.find("stop_gradient(" + operand.name + ")") != each.text.npos;
      const bool picks = each.text.find("[" + operand.name + ",") != each.text.npos;
      const bool is_seed = each.text.find("random(" + operand.name + ",") != each.text.npos;
      const bool has_one = backward.find_result("d" + operand.name).has_value();
      const bool is_table = operand.spread.row.picked();
      EXPECT_EQ(has_one, !integer && !stopped && !picks && !is_seed && !is_table) << each.name << " " << operand.name;
      missing += !has_one;
    }
  }
  EXPECT_GT(missing, 10);  // or nothing was looked at
}

}  // namespace
}  // namespace trireme
