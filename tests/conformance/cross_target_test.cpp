// Reference, AVX2, AVX-512, WebAssembly and the 32-lane machine on problems at random, between guard pages: operators
// and random programs, types, shapes, strides, threads. Fixed seeds; LONG=1 goes on for long.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "language/print.hpp"
#include "language/random_program.hpp"
#include "passes/passes.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/ops.hpp"
#include "problem/resolve.hpp"
#include "problem/samples.hpp"
#include "random_layouts_for_test.hpp"

namespace trireme {
namespace {

const std::vector<std::int64_t> odd_columns = {1,  2,  3,  7,   8,   12,  15,  16,  17,   31,
                                               33, 60, 64, 255, 256, 257, 300, 541, 1020, 1030};

// The outer axes, then the columns as one axis or two.
Dims random_shape(Random& random, std::int64_t columns, int& axes) {
  Dims shape;
  for (std::int64_t k = random.below(3); k > 0; --k) shape.push_back(1 + random.below(4));
  shape.push_back(random.below(12) ? 1 + random.below(9) : 0);
  axes = 1;
  for (std::int64_t factor : {2, 3, 5})
    if (axes == 1 && columns % factor == 0 && random.below(3) == 0) {
      shape.push_back(factor);
      columns /= factor;
      axes = 2;
    }
  shape.push_back(columns);
  return shape;
}

// Strides for every array of the bound program.
std::map<std::string, Placement> random_places(const Program& bound, const Dims& shape, int axes, Random& random) {
  std::map<std::string, Placement> places;
  std::int64_t columns = 1;
  for (std::size_t k = shape.size() - static_cast<std::size_t>(axes); k < shape.size(); ++k) columns *= shape[k];
  auto place = [&](const std::string& name, const Spread& spread, std::optional<Type> type, bool result) {
    const std::int64_t table = spread.row.picked() ? 1 + random.below(9) : -1;
    const ArrayAxes found = axes_of(indexing(bound, spread, columns).value(), shape, axes, table);
    const Dims extents = found.all();
    if (type && is_packed(*type)) {  // columns side by side, and rows that begin with a byte
      places[name] = {.offset = 2 * random.below(4), .strides = contiguous_strides(extents)};
      const std::int64_t apart = 1 + random.below(2);
      for (std::size_t k = 0; k < found.rows.size(); ++k) places[name].strides[k] *= random.below(4) ? apart : -apart;
    } else if (random.below(3)) {
      places[name] = {.offset = random.below(4), .strides = random_strides(extents, result, random.state)};
    }
    if (table >= 0) places[name].rows = table;
  };
  for (const Operand& operand : bound.operands)
    if (!operand.constant && operand.type) place(operand.name, operand.spread, operand.type, false);
  for (const Output& result : bound.results) place(result.name, result.spread, result.type, true);
  return places;
}

std::string compare_on_all(const GuardedProblem& problem, Random& random, int most_ms) {
  RunOptions options{.threads = static_cast<int>(1 + random.below(5)), .chunk_rows = random.below(3) * random.below(9)};
  Guarded::Edge edge = random.below(2) ? Guarded::Edge::End : Guarded::Edge::Begin;
  for (const DeviceEntry* device : devices_here(most_ms))
    if (std::string wrong = problem.compare(*device, options, edge); !wrong.empty())
      return fmt::format("{}, {} threads, chunks of {}: {}", device->name, options.threads, options.chunk_rows, wrong);
  return {};
}

TEST(CrossTarget, fault_02_OperatorsOverTypesShapesAndLayouts) {
  const int rounds = std::getenv("LONG") ? 300 : 5;
  int made = 0;
  each_operator(rounds, [&](const OperatorText& each, Problem problem, Random& random) {
    Dims shape = random_shape(random, random.of(odd_columns), problem.axes);
    std::vector<std::int64_t> extents(shape.begin(), shape.end());
    std::swap(problem.shape, extents);
    Result<ResolvedProblem> resolved = resolve(problem, each.text);
    if (!resolved || !make_buffers(resolved->bound, shape, problem.axes)) {  // as with odd columns and n / 2
      problem.shape = extents, problem.axes = 1, shape = Dims(extents);
      resolved = resolve(problem, each.text);
    }
    ASSERT_TRUE(resolved) << resolved.error().message;
    auto choose = [&](const std::string& name, auto&& type) {
      if (!problem.types.contains(name) && random.below(2)) problem.types[name] = type();
    };
    for (std::size_t k = 0; k < resolved->bound.operands.size(); ++k)
      if (const Operand& operand = resolved->bound.operands[k]; !operand.constant && operand.type)
        choose(operand.name, [&] { return random_type(resolved->bound, k, random); });
    for (const Output& result : resolved->bound.results) {
      choose(result.name, [&] { return random.of(storage_types); });
      if (sums_over_rows(resolved->bound, result) && random.below(2)) problem.accumulate.insert(result.name);
    }
    problem.placements = random_places(resolved->bound, shape, problem.axes, random);
    Result<Prepared> prepared = prepare_problem(problem);
    ASSERT_TRUE(prepared) << prepared.error().message << ": " << print(problem);
    GuardedProblem guarded(prepared->program, problem.rows(), problem.columns(), prepared->constants,
                           std::move(prepared->buffers));
    guarded.run_reference().value();
    std::string wrong = compare_on_all(guarded, random, 1);
    ASSERT_EQ(wrong, "") << "rerun: trireme verify \"" << print(problem) << '"';
    ++made;
  });
  EXPECT_GT(made, 100);
}

TEST(CrossTarget, RandomProgramsTypesShapesAndStrides) {
  const std::uint64_t count = std::getenv("LONG") ? 1000000 : 250;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Random random{std::mt19937_64(seed)};
    const std::int64_t columns = random.of(odd_columns);
    RandomProgram options{.seed = seed, .size = static_cast<int>(4 + random.below(30))};
    options.columns_multiple = static_cast<int>(std::gcd(columns, 60));
    options.special_numbers = seed % 3 == 0;
    options.picks = seed % 2 == 0;
    options.seeds = seed % 4 == 1;
    Program program = random_program(options);
    std::vector<Type> types = {Type::F32, Type::F32};
    for (const TypeFacts& each : type_facts)
      if (each.type != Type::F64 || seed % 4 == 0) types.push_back(each.type);
    int axes = 1;
    const Dims shape = random_shape(random, columns, axes);
    Binding binding{.columns = columns};
    auto random_type_of = [&](const Program::Array& array) {
      const Type type = random.of(types);
      return is_packed(type) && (shape[shape.size() - 1] % 2 || !can_be_packed(array)) ? Type::U8 : type;
    };
    for (std::size_t k = 0; k < program.operands.size(); ++k) {
      const Operand& operand = program.operands[k];
      if (operand.constant && operand.fallback == no_node) binding.constants[operand.name] = 0.75;
      if (!operand.constant) binding.types[operand.name] = random_type_of(program.array(k));
      if (operand.name[0] == 'p') binding.types[operand.name] = random.below(2) ? Type::I32 : Type::I64;
      if (operand.name == "seed") binding.types[operand.name] = Type::I64;
    }
    for (std::size_t r = 0; r < program.results.size(); ++r)
      binding.types[program.results[r].name] = random_type_of(program.array(program.array_of_result(r)));
    for (const Output& result : program.results)
      if (sums_over_rows(program, result) && seed % 2) binding.accumulate.insert(result.name);
    Result<PreparedProgram> prepared = prepare(program, binding);
    ASSERT_TRUE(prepared) << prepared.error().message << '\n' << print(program);
    const auto& [bound, expanded, constants] = *prepared;
    Result<Buffers> buffers = make_buffers(bound, shape, axes, random_places(bound, shape, axes, random));
    ASSERT_TRUE(buffers) << buffers.error().message;
    for (std::size_t k = 0; k < buffers->operands.size(); ++k) {
      const Buffer& buffer = buffers->operands[k];
      if (const std::optional<Table> table = table_picked_by(bound, *buffers, k)) {
        fill_picks(buffer.array, buffer.row_extent, static_cast<std::uint32_t>(seed), bound.operands[k].name,
                   table->rows, table->written);
        continue;
      }
      fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, static_cast<std::uint32_t>(seed),
                   bound.operands[k].name, default_range(buffer.array.type));
    }
    std::int64_t rows = 1;
    for (std::size_t k = 0; k + axes < shape.size(); ++k) rows *= shape[k];
    GuardedProblem guarded(expanded, rows, columns, constants, std::move(*buffers));
    Status ran = guarded.run_reference();
    ASSERT_TRUE(ran) << ran.error().message;
    std::string wrong = compare_on_all(guarded, random, seed % 16 ? 10 : 100);
    ASSERT_EQ(wrong, "") << "seed " << seed << ' ' << print(shape) << " axes " << axes << '\n'
                         << print(program) << '\n'
                         << print(expanded);
  }
}

}  // namespace
}  // namespace trireme
