// Kernels that take columns backwards where they lie: the reference's bits, also for other strides that their plans
// accept.
#include <gtest/gtest.h>

#include <cstdlib>

#include "language/print.hpp"
#include "language/random_program.hpp"
#include "passes/passes.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/guarded_for_test.hpp"
#include "plan/ops.hpp"
#include "plan/plan_for_test.hpp"
#include "plan/remarks.hpp"
#include "plan/resolve.hpp"
#include "plan/samples.hpp"

namespace trireme {
namespace {

struct Random {
  std::mt19937_64 state;
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(state() % static_cast<std::uint64_t>(n)); }
  template <typename T>
  T of(const std::vector<T>& all) {
    return all[below(static_cast<std::int64_t>(all.size()))];
  }
};

const std::vector<Type> types = {Type::F32,    Type::BF16,   Type::F16, Type::F64,
                                 Type::F8E4M3, Type::F8E5M2, Type::I8,  Type::I32};
const std::vector<std::int64_t> some_rows = {1, 2, 3, 5, 8, 13, 30};
const std::vector<std::int64_t> some_columns = {2,   3,   7,   15,  16,  17,  31,  64,  100,
                                                128, 255, 256, 257, 300, 512, 513, 1030};

// Outer, inner, columns. Arrays per element: backwards, plain or, seldom, columns apart; rows in one order or the
// other, with gaps. Weights backwards, seldom.
std::map<std::string, Placement> backwards(const Program& bound, std::int64_t outer, std::int64_t inner,
                                           std::int64_t columns, Random& random) {
  std::map<std::string, Placement> places;
  auto place = [&](const std::string& name, const Spread& spread) {
    if (!spread.plain() || !spread.column.present) return;
    if (!spread.row.present) {
      if (random.below(4) == 0) places[name] = {.strides = {-1}};
      return;
    }
    const std::int64_t kind = random.below(8), step = kind == 0 ? 2 : kind < 3 ? 1 : -1;
    const std::int64_t row = columns * std::abs(step) + (random.below(2) ? random.below(9) : 0);
    const std::int64_t sign = random.below(3) ? 1 : -1;
    const std::int64_t gap = random.below(2) * 5;
    places[name] = {.offset = random.below(4), .strides = {row * inner + gap, sign * row, step}};
    if (random.below(3) == 0) places[name].strides = {row, outer * row + gap, step};
  };
  for (const Operand& operand : bound.operands)
    if (!operand.constant && operand.type) place(operand.name, operand.spread);
  for (const Output& result : bound.results) place(result.name, result.spread);
  return places;
}

// The device with a config of its own making, half the time. `taken`: kernels for columns backwards.
DeviceEntry any_config(const DeviceEntry& device, Random& random, int& taken) {
  DeviceEntry changed = device;
  const std::uint64_t seed = random.state();
  changed.compile = [&device, &taken, seed](const Program& program,
                                            const Facts& facts) -> Result<std::unique_ptr<Executable>> {
    Random own{std::mt19937_64(seed)};
    Facts given = facts, contiguous = facts;
    contiguous.layout = {};
    if (own.below(2)) {
      Config config = choose_config(program, device.machine().value(), contiguous);
      config.prefetch = own.below(2);
      config.overlap = own.below(2);
      config.streaming = own.below(2);
      if (own.below(2)) config.stripes = config.columns = 0, config.hoist = config.reload = false;
      if (!config.stripes)
        config.unroll = 1 << own.below(5), config.unroll = std::min(config.unroll, 256 / config.lanes);
      given.config = config;
    }
    TRIREME_TRY(made, device.compile(program, given));
    taken += made->describe().find("columns backwards, taken where they lie") != std::string::npos;
    return std::move(made);
  };
  return changed;
}

std::string compare(const GuardedProblem& problem, Random& random, int& taken) {
  RunOptions options{.threads = static_cast<int>(1 + random.below(5)),
                     .chunk_rows = random.below(3) * random.below(40)};
  Guarded::Edge edge = random.below(2) ? Guarded::Edge::End : Guarded::Edge::Begin;
  for (const char* name : {"cpu:avx512", "cpu:avx2"}) {
    const DeviceEntry& device = *find_device(name);
    if (!device.missing().empty()) continue;
    std::string wrong = problem.compare(any_config(device, random, taken), options, edge);
    if (!wrong.empty())
      return fmt::format("{}, {} threads, chunks of {}: {}", name, options.threads, options.chunk_rows, wrong);
  }
  return {};
}

bool no_cpu() { return !find_device("cpu:avx2")->missing().empty(); }

TEST(Backwards, EveryOperatorOverTypesShapesAndLayouts) {
  if (no_cpu()) GTEST_SKIP() << find_device("cpu:avx2")->missing();
  const int rounds = std::getenv("LONG") ? 200 : 6;
  int taken = 0;
  for (const OperatorText& each : operator_texts()) {
    Remarks remarks = parse_remarks(each.text).value();
    for (int round = 0; round < 2 * rounds; ++round) {
      Random random{std::mt19937_64(static_cast<std::uint64_t>(round))};
      Problem problem = parse_problem(std::string(each.name) + " " + random.of(remarks.tries)).value();
      problem.backward = round % 2;
      const std::int64_t outer = 1 + random.below(3), inner = random.of(some_rows), columns = random.of(some_columns);
      problem.shape = {outer, inner, columns};
      problem.axes = 1;
      problem.placements.clear();
      Result<Prepared> plain = prepare_problem(problem, {}, Fill::Nothing);
      if (!plain) continue;
      for (const Operand& operand : plain->program.operands)
        if (!operand.constant && random.below(2)) problem.types[operand.name] = random.of(types);
      for (const Output& result : plain->program.results)
        if (random.below(2)) problem.types[result.name] = random.of(types);
      problem.placements = backwards(plain->program, outer, inner, columns, random);
      Result<Prepared> prepared = prepare_problem(problem);
      ASSERT_TRUE(prepared) << prepared.error().message << ": " << print(problem);
      GuardedProblem guarded(prepared->program, problem.rows(), problem.columns(), prepared->constants,
                             std::move(prepared->buffers));
      guarded.run_reference().value();
      ASSERT_EQ(compare(guarded, random, taken), "") << "rerun: trireme verify \"" << print(problem) << '"';
    }
  }
  EXPECT_GT(taken, 300);
}

TEST(Backwards, RandomPrograms) {
  if (no_cpu()) GTEST_SKIP() << find_device("cpu:avx2")->missing();
  const std::uint64_t count = std::getenv("LONG") ? 100000 : 400;
  int taken = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Random random{std::mt19937_64(seed)};
    RandomProgram options{.seed = seed, .size = static_cast<int>(4 + random.below(30))};
    options.special_numbers = seed % 3 == 0;
    Program program = random_program(options);
    Binding binding;
    for (const Operand& operand : program.operands) {
      if (operand.constant && operand.fallback == no_node) binding.constants[operand.name] = 0.75;
      if (!operand.constant) binding.types[operand.name] = random.of(types);
    }
    for (const Output& result : program.results) binding.types[result.name] = random.of(types);
    Program bound = bind(program, binding).value(), expanded = prepare(program, binding).value();
    const std::int64_t outer = 1 + random.below(3), inner = random.of(some_rows), columns = random.of(some_columns);
    Result<Buffers> buffers =
        make_buffers(bound, Dims({outer, inner, columns}), 1, backwards(bound, outer, inner, columns, random));
    ASSERT_TRUE(buffers) << buffers.error().message;
    for (std::size_t k = 0; k < buffers->operands.size(); ++k) {
      const Buffer& buffer = buffers->operands[k];
      fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, static_cast<std::uint32_t>(seed),
                   bound.operands[k].name, default_range(buffer.array.type));
    }
    GuardedProblem guarded(expanded, outer * inner, columns, constants_of(bound, binding), std::move(*buffers));
    guarded.run_reference().value();
    ASSERT_EQ(compare(guarded, random, taken), "")
        << "seed " << seed << ' ' << outer << 'x' << inner << 'x' << columns << '\n'
        << print(expanded);
  }
  EXPECT_GT(taken, 100);
}

// A plan is made for columns apart, and takes whatever strides do that.
TEST(Backwards, PlansTakeOtherStridesToo) {
  constexpr std::int64_t rows = 48, columns = 300;
  PlanOptions options{.program = rms_norm(), .shape = {rows, columns}};
  options.strides = {{"x", {columns, -1}}, {"y", {columns, -1}}};
  Plan plan = Plan::create(cpu(), options).value();
  if (no_cpu()) GTEST_SKIP() << "no AVX2: " << plan.describe();
  EXPECT_NE(plan.describe().find("taken where they lie; with other strides columns apart, copied: x, y"),
            std::string::npos)
      << plan.describe();
  Floats x = sampled(rows * columns), gamma = sampled(columns, "gamma");
  Floats wanted = by_reference(x, rows, columns).y;
  const std::vector<Dims> all = {{columns, -1}, {columns + 3, -1}, {columns, 1}, {2 * columns, -2}, {1, rows}};
  for (const Dims& of_x : all)
    for (const Dims& of_y : all) {
      struct Placed {
        Dims strides;
        Floats memory;
        std::int64_t first;
        Placed(const Dims& strides)
            : strides(strides),
              memory(rows * std::abs(strides[0]) + columns * std::abs(strides[1])),
              first(strides[1] < 0 ? (columns - 1) * -strides[1] : 0) {}
        float& at(std::int64_t r, std::int64_t c) { return memory[first + r * strides[0] + c * strides[1]]; }
        View view() { return {memory.data() + first, Type::F32, {rows, columns}, strides}; }
      } from(of_x), to(of_y);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) from.at(r, c) = x[r * columns + c];
      Floats rstd(rows), got;
      Args args = plan.args();
      args["x"] = from.view(), args["y"] = to.view(), args["gamma"] = view(gamma), args["rstd"] = view(rstd);
      Workspace workspace(plan.workspace_bytes());
      plan.run(args, {}, workspace.span()).value();
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) got.push_back(to.at(r, c));
      EXPECT_TRUE(same_bits(got, wanted)) << print_strides(of_x) << ' ' << print_strides(of_y);
    }
}

// h lies on the residual, and is both stored and summed.
TEST(Backwards, InPlace) {
  constexpr std::int64_t rows = 37, columns = 270;
  RowProgram program = RowProgram::named("add_rms_norm").value();
  Floats x = sampled(rows * columns), residual = sampled(rows * columns, "residual"), gamma = sampled(columns, "gamma");
  auto run = [&](bool turn, bool in_place) {
    PlanOptions options{.program = program, .shape = {rows, columns}};
    if (turn)
      for (const char* name : {"x", "residual", "y", "h"}) options.strides[name] = {columns, -1};
    if (in_place) options.in_place = {{"h", "residual"}};
    Plan plan = Plan::create(cpu(), options).value();
    EXPECT_TRUE(!turn || no_cpu() || plan.describe().find("taken where they lie") != std::string::npos)
        << plan.describe();
    auto turned = [&](const Floats& from) {
      Floats to(from.size());
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) to[r * columns + columns - 1 - c] = from[r * columns + c];
      return turn ? to : from;
    };
    Floats a = turned(x), b = turned(residual), y(x.size()), h(x.size()), rstd(rows);
    auto placed = [&](Floats& values) {
      View there = view(values);
      if (turn) there = {values.data() + columns - 1, Type::F32, {rows, columns}, {columns, -1}};
      return there;
    };
    Args args = plan.args();
    args["x"] = placed(a), args["residual"] = placed(b), args["gamma"] = view(gamma), args["y"] = placed(y);
    args["h"] = in_place ? placed(b) : placed(h), args["rstd"] = view(rstd);
    Workspace workspace(plan.workspace_bytes());
    plan.run(args, {}, workspace.span()).value();
    return std::vector<Floats>{turned(y), turned(in_place ? b : h), rstd};
  };
  std::vector<Floats> plain = run(false, false), apart = run(true, false), over = run(true, true);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(same_bits(plain[k], apart[k])) << k;
    EXPECT_TRUE(same_bits(plain[k], over[k])) << k;
  }
}

}  // namespace
}  // namespace trireme
