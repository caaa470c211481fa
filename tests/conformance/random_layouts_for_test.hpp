// For tests: operators and random programs on the CPU, laid out in some way at random, between guard pages and against
// the reference.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <numeric>

#include "language/print.hpp"
#include "language/random_program.hpp"
#include "passes/passes.hpp"
#include "plan/check.hpp"
#include "plan/devices_for_test.hpp"
#include "plan/guarded_for_test.hpp"
#include "plan/ops.hpp"
#include "problem/remarks.hpp"
#include "problem/resolve.hpp"
#include "problem/samples.hpp"

namespace trireme {

struct Random {
  std::mt19937_64 state;
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(state() % static_cast<std::uint64_t>(n)); }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(static_cast<std::int64_t>(all.size()))];
  }
};

// Those of any array, in any number of columns.
inline const std::vector<Type> storage_types = [] {
  std::vector<Type> types;
  for (const TypeFacts& each : type_facts)
    if (!is_packed(each.type)) types.push_back(each.type);
  return types;
}();

// Any type, but of an operand that picks rows, and of a seed.
inline Type random_type(const Program& program, std::size_t operand, Random& random) {
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (const Axis& row = program.array(k).spread.row;
        row.picked() && program[row.pick].payload == static_cast<std::int64_t>(operand))
      return random.below(2) ? Type::I32 : Type::I64;
  for (NodeId id = 0; id < program.size(); ++id)
    if (program[id].op == Op::Random && program[program[id].args[0]].payload == static_cast<std::int64_t>(operand))
      return Type::I64;
  return random.of(storage_types);
}

// Every operator, forward and backward by turns, with one of the lines that it is tried with: each(operator, problem,
// random).
template <typename Each>
void each_operator(int rounds, Each&& each) {
  for (const OperatorText& op : operator_texts()) {
    Remarks remarks = parse_remarks(op.text).value();
    for (int round = 0; round < 2 * rounds && !testing::Test::HasFatalFailure(); ++round) {
      Random random{std::mt19937_64(static_cast<std::uint64_t>(round))};
      Problem problem = parse_problem(std::string(op.name) + " " + random.of(remarks.tries)).value();
      problem.backward = round % 2;
      each(op, std::move(problem), random);
    }
  }
}

// How often each device made the kernels that a test is about, and that none of them did so less than `least` times.
using Taken = std::map<std::string, int>;
inline void expect_taken(const Taken& taken, int least) {
  for (const DeviceEntry* entry : cpus())
    EXPECT_GT(taken.contains(entry->name) ? taken.at(entry->name) : 0, least) << entry->name;
}

// Problems of outer x inner x columns.
struct RandomLayouts {
  using Placements = std::map<std::string, Placement>;
  std::vector<std::int64_t> outers, inners, columns;
  std::function<bool(const Program&)> wanted;
  std::function<Placements(const Program& bound, const Dims& shape, Random&)> place;
  // The device with a config of its own making, now and then; it counts the kernels that the test is about, by device.
  std::function<DeviceEntry(const DeviceEntry&, Random&)> device;

  std::string compare(const GuardedProblem& problem, Random& random) const {
    RunOptions options{.threads = static_cast<int>(1 + random.below(5)),
                       .chunk_rows = random.below(3) * random.below(40)};
    Guarded::Edge edge = random.below(2) ? Guarded::Edge::End : Guarded::Edge::Begin;
    for (const DeviceEntry* entry : cpus()) {
      std::string wrong = problem.compare(device(*entry, random), options, edge);
      if (!wrong.empty())
        return fmt::format("{}, {} threads, chunks of {}: {}", entry->name, options.threads, options.chunk_rows, wrong);
    }
    return {};
  }

  void every_operator(int rounds) const {
    each_operator(rounds, [&](const OperatorText&, Problem problem, Random& random) {
      problem.shape = {random.of(outers), random.of(inners), random.of(columns)};
      problem.axes = 1;
      problem.placements.clear();
      Result<Prepared> plain = prepare_problem(problem, {}, Fill::Nothing);
      if (!plain || !wanted(plain->program)) return;
      for (std::size_t k = 0; k < plain->program.operands.size(); ++k)
        if (const Operand& operand = plain->program.operands[k]; !operand.constant && random.below(2))
          problem.types[operand.name] = random_type(plain->program, k, random);
      for (const Output& result : plain->program.results)
        if (random.below(2)) problem.types[result.name] = random.of(storage_types);
      problem.placements = place(plain->program, Dims(problem.shape), random);
      for (std::size_t k = 0; k < plain->bound.array_count(); ++k)
        if (const Program::Array array = plain->bound.array(k); array.type && is_packed(*array.type))
          problem.placements.erase(array.name);
      Result<Prepared> prepared = prepare_problem(problem);
      ASSERT_TRUE(prepared) << prepared.error().message << ": " << print(problem);
      GuardedProblem guarded(prepared->program, problem.rows(), problem.columns(), prepared->constants,
                             std::move(prepared->buffers));
      guarded.run_reference().value();
      ASSERT_EQ(compare(guarded, random), "") << "rerun: trireme verify \"" << print(problem) << '"';
    });
  }

  void random_programs(std::uint64_t count) const {
    for (std::uint64_t seed = 0; seed < count; ++seed) {
      Random random{std::mt19937_64(seed)};
      const Dims shape = {random.of(outers), random.of(inners), random.of(columns)};
      RandomProgram options{.seed = seed, .size = static_cast<int>(4 + random.below(30))};
      options.columns_multiple = static_cast<int>(std::gcd(shape[2], 60));
      options.special_numbers = seed % 3 == 0;
      Program program = random_program(options);
      Binding binding{.columns = shape[2]};
      for (const Operand& operand : program.operands) {
        if (operand.constant && operand.fallback == no_node) binding.constants[operand.name] = 0.75;
        if (!operand.constant) binding.types[operand.name] = random.of(storage_types);
      }
      for (const Output& result : program.results) binding.types[result.name] = random.of(storage_types);
      const auto [bound, expanded, constants] = prepare(program, binding).value();
      if (!wanted(expanded)) continue;
      Result<Buffers> buffers = make_buffers(bound, shape, 1, place(bound, shape, random));
      ASSERT_TRUE(buffers) << buffers.error().message;
      for (std::size_t k = 0; k < buffers->operands.size(); ++k) {
        const Buffer& buffer = buffers->operands[k];
        fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, static_cast<std::uint32_t>(seed),
                     bound.operands[k].name, default_range(buffer.array.type));
      }
      GuardedProblem guarded(expanded, shape[0] * shape[1], shape[2], constants, std::move(*buffers));
      guarded.run_reference().value();
      ASSERT_EQ(compare(guarded, random), "") << "seed " << seed << ' ' << print(shape) << '\n' << print(expanded);
    }
  }
};

}  // namespace trireme
