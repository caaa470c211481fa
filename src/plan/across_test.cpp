// Kernels whose lanes are rows (schedule/across.hpp): the reference's bits for arrays whose rows lie side by side, and
// for other strides that their plans accept.
#include "schedule/across.hpp"

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
const std::vector<std::int64_t> some_rows = {16, 17, 31, 33, 64, 100, 130, 200, 261};
const std::vector<std::int64_t> some_columns = {1, 2, 3, 7, 17, 64, 128, 255, 256, 257, 300, 513, 1030};

// Outer, inner, columns: rows side by side, inner ones or all of them, with gaps between columns; each array in its own
// way. Columns may go backwards and have one stride or another.
std::map<std::string, Placement> side_by_side(const Program& bound, std::int64_t outer, std::int64_t inner,
                                              std::int64_t columns, Random& random) {
  std::map<std::string, Placement> places;
  auto place = [&](const std::string& name, const Spread& spread) {
    if (!spread.row.present) return;
    if (!spread.column.present) {
      if (random.below(2)) places[name] = {.offset = random.below(4), .strides = {inner + random.below(3), 1}};
      return;
    }
    bool all = random.below(2);
    std::int64_t rows = (all ? outer * inner : inner) + random.below(4), sign = random.below(4) ? 1 : -1;
    places[name] = {.offset = random.below(4), .strides = {all ? inner : rows * columns + 5, 1, sign * rows}};
  };
  for (const Operand& operand : bound.operands)
    if (!operand.constant && operand.type) place(operand.name, operand.spread);
  for (const Output& result : bound.results) place(result.name, result.spread);
  return places;
}

// The device with a config of its own making, half the time, and where others would be chosen.
DeviceEntry any_config(const DeviceEntry& device, Random& random, int& taken) {
  DeviceEntry changed = device;
  const std::uint64_t seed = random.state();
  changed.compile = [&device, &taken, seed](const Program& program, const Facts& facts) {
    Random own{std::mt19937_64(seed)};
    Facts given = facts;
    const Config chosen = choose_config(program, device.machine().value(), facts);
    if (chosen.across || (facts.together > 1 && facts.layout.strided())) {
      ++taken;
      Config config{.lanes = chosen.lanes, .across = true};
      config.rows = static_cast<int>(1 + own.below(16));
      config.unroll = 2 << own.below(4);
      config.prefetch = own.below(2);
      config.overlap = own.below(2);
      config.streaming = own.below(2);
      if (!chosen.across || own.below(2)) given.config = config;
    }
    return device.compile(program, given);
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

// Forward and backward; how often a kernel of this kind was taken.
int every_operator(int rounds, const std::vector<std::int64_t>& outers, const std::vector<std::int64_t>& inners,
                   const std::vector<std::int64_t>& column_counts, bool sums_only) {
  int taken = 0;
  for (const OperatorText& each : operator_texts()) {
    Remarks remarks = parse_remarks(each.text).value();
    for (int round = 0; round < 2 * rounds; ++round) {
      Random random{std::mt19937_64(static_cast<std::uint64_t>(round))};
      Problem problem = parse_problem(std::string(each.name) + " " + random.of(remarks.tries)).value();
      problem.backward = round % 2;
      const std::int64_t outer = random.of(outers), inner = random.of(inners), columns = random.of(column_counts);
      problem.shape = {outer, inner, columns};
      problem.axes = 1;
      problem.placements.clear();
      Result<Prepared> plain = prepare_problem(problem, {}, Fill::Nothing);
      if (!plain || !goes_across(plain->program)) continue;
      const bool sums = std::any_of(plain->program.results.begin(), plain->program.results.end(),
                                    [](const Output& result) { return !result.spread.row.present; });
      if (sums_only && !sums) continue;
      for (const Operand& operand : plain->program.operands)
        if (!operand.constant && random.below(2)) problem.types[operand.name] = random.of(types);
      for (const Output& result : plain->program.results)
        if (random.below(2)) problem.types[result.name] = random.of(types);
      problem.placements = side_by_side(plain->program, outer, inner, columns, random);
      Result<Prepared> prepared = prepare_problem(problem);
      EXPECT_TRUE(prepared) << prepared.error().message << ": " << print(problem);
      if (!prepared) return taken;
      GuardedProblem guarded(prepared->program, problem.rows(), problem.columns(), prepared->constants,
                             std::move(prepared->buffers));
      guarded.run_reference().value();
      std::string wrong = compare(guarded, random, taken);
      EXPECT_EQ(wrong, "") << "rerun: trireme verify \"" << print(problem) << '"';
      if (!wrong.empty()) return taken;
    }
  }
  return taken;
}

TEST(Across, EveryOperatorOverTypesShapesAndLayouts) {
  if (no_cpu()) GTEST_SKIP() << find_device("cpu:avx2")->missing();
  EXPECT_GT(every_operator(std::getenv("LONG") ? 200 : 6, {1, 2, 3}, some_rows, some_columns, false), 150);
}

// 2048 rows and more have row blocks that registers of rows fit; their last one may be shorter.
TEST(Across, SumsOverRows) {
  if (no_cpu()) GTEST_SKIP() << find_device("cpu:avx2")->missing();
  EXPECT_GT(
      every_operator(std::getenv("LONG") ? 100 : 6, {1, 3, 21}, {100, 701, 2048, 2100}, {1, 7, 16, 33, 128, 257}, true),
      20);
}

TEST(Across, RandomPrograms) {
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
    if (!goes_across(expanded)) continue;
    const std::int64_t outer = 1 + random.below(3), inner = random.of(some_rows), columns = random.of(some_columns);
    Result<Buffers> buffers =
        make_buffers(bound, Dims({outer, inner, columns}), 1, side_by_side(bound, outer, inner, columns, random));
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
TEST(Across, PlansTakeOtherStridesToo) {
  constexpr std::int64_t rows = 48, columns = 300;
  PlanOptions options{.program = rms_norm(), .shape = {rows, columns}};
  options.strides = {{"x", {1, rows}}, {"y", {1, rows}}};
  Plan plan = Plan::create(cpu(), options).value();
  if (plan.describe().find("across") == std::string::npos) GTEST_SKIP() << "no AVX2: " << plan.describe();
  Floats x = sampled(rows * columns), gamma = sampled(columns, "gamma");
  Floats wanted = by_reference(x, rows, columns).y;
  for (Dims strides : {Dims({1, rows}), Dims({columns, 1}), Dims({2 * columns, 2}), Dims({1, rows + 7})}) {
    auto at = [&](std::int64_t r, std::int64_t c) { return r * strides[0] + c * strides[1]; };
    Floats there(at(rows - 1, columns - 1) + 1), y(there.size()), rstd(rows), got;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) there[at(r, c)] = x[r * columns + c];
    Args args = plan.args();
    args["x"] = view(there, {rows, columns}, strides), args["y"] = view(y, {rows, columns}, strides);
    args["gamma"] = view(gamma), args["rstd"] = view(rstd);
    Workspace workspace(plan.workspace_bytes());
    plan.run(args, {}, workspace.span()).value();
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) got.push_back(y[at(r, c)]);
    EXPECT_TRUE(same_bits(got, wanted)) << print_strides(strides);
  }
}

// h lies on the residual, and is both stored and summed.
TEST(Across, InPlace) {
  constexpr std::int64_t rows = 37, columns = 270;
  RowProgram program = RowProgram::named("add_rms_norm").value();
  Floats x = sampled(rows * columns), residual = sampled(rows * columns, "residual"), gamma = sampled(columns, "gamma");
  auto run = [&](bool transposed, bool in_place) {
    PlanOptions options{.program = program, .shape = {rows, columns}};
    if (transposed)
      for (const char* name : {"x", "residual", "y", "h"}) options.strides[name] = {1, rows};
    if (in_place) options.in_place = {{"h", "residual"}};
    Plan plan = Plan::create(cpu(), options).value();
    EXPECT_TRUE(!transposed || no_cpu() || plan.describe().find("across") != std::string::npos) << plan.describe();
    auto turned = [&](const Floats& from) {
      Floats to(from.size());
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
      return transposed ? to : from;
    };
    Floats a = turned(x), b = turned(residual), y(x.size()), h(x.size()), rstd(rows);
    Args args = plan.args();
    args["x"] = view(a), args["residual"] = view(b), args["gamma"] = view(gamma), args["y"] = view(y);
    args["h"] = in_place ? view(b) : view(h), args["rstd"] = view(rstd);
    Workspace workspace(plan.workspace_bytes());
    plan.run(args, {}, workspace.span()).value();
    std::vector<Floats> all = {y, in_place ? b : h, rstd};
    return all;
  };
  std::vector<Floats> plain = run(false, false), turned = run(true, false), over = run(true, true);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_TRUE(same_bits(turned[k], over[k])) << k;
  EXPECT_TRUE(same_bits(plain[2], turned[2]));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) ASSERT_EQ(plain[0][r * columns + c], turned[0][c * rows + r]);
}

}  // namespace
}  // namespace trireme
