// Kernels whose lanes are rows (schedule/across.hpp): the reference's bits for arrays whose rows lie side by side, and
// for other strides that their plans accept.
#include "schedule/across.hpp"

#include "ir/contract.hpp"
#include "plan/plan_for_test.hpp"
#include "plan/random_layouts_for_test.hpp"

namespace trireme {
namespace {

// Rows side by side, inner ones or all of them, with gaps between columns; each array in its own way. Columns may go
// backwards and have one stride or another.
RandomLayouts::Placements side_by_side(const Program& bound, const Dims& shape, Random& random) {
  const std::int64_t outer = shape[0], inner = shape[1], columns = shape[2];
  RandomLayouts::Placements places;
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

// `taken` counts kernels that problems are run by: sums over rows want row blocks that are multiples of the lanes.
DeviceEntry any_config(const DeviceEntry& device, Random& random, int& taken) {
  DeviceEntry changed = device;
  const std::uint64_t seed = random.state();
  changed.compile = [&device, &taken, seed](const Program& program, const Facts& facts) {
    Random own{std::mt19937_64(seed)};
    Facts given = facts;
    const Config chosen = choose_config(program, device.machine().value(), facts);
    const bool sums = std::any_of(program.results.begin(), program.results.end(),
                                  [](const Output& result) { return !result.spread.row.present; });
    const bool fits = goes_across(program) && facts.together >= chosen.lanes && facts.layout.strided() &&
                      (!sums || contract::row_block(facts.rows, facts.columns) % chosen.lanes == 0);
    EXPECT_TRUE(fits || !chosen.across);
    if (fits) {
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

RandomLayouts layouts(int& taken) {
  return {.outers = {1, 2, 3},
          .inners = {16, 17, 31, 33, 64, 100, 130, 200, 261},
          .columns = {1, 2, 3, 7, 17, 64, 128, 255, 256, 257, 300, 513, 1030},
          .wanted = goes_across,
          .place = side_by_side,
          .device = [&](const DeviceEntry& device, Random& random) { return any_config(device, random, taken); }};
}

TEST(Across, EveryOperatorOverTypesShapesAndLayouts) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  int taken = 0;
  layouts(taken).every_operator(std::getenv("LONG") ? 200 : 6);
  EXPECT_GT(taken, 150);
}

// 2048 rows and more have row blocks that registers of rows fit; their last one may be shorter.
TEST(Across, SumsOverRows) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  int taken = 0;
  RandomLayouts many = layouts(taken);
  many.outers = {3, 21};
  many.inners = {100, 701, 2048, 2100};
  many.columns = {2, 7, 16, 33, 128, 257};
  many.wanted = [](const Program& program) {
    return goes_across(program) && std::any_of(program.results.begin(), program.results.end(),
                                               [](const Output& result) { return !result.spread.row.present; });
  };
  many.every_operator(std::getenv("LONG") ? 100 : 6);
  EXPECT_GT(taken, 40);
}

TEST(Across, RandomPrograms) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  int taken = 0;
  layouts(taken).random_programs(std::getenv("LONG") ? 100000 : 400);
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
    EXPECT_TRUE(!transposed || !no_cpu().empty() || plan.describe().find("across") != std::string::npos)
        << plan.describe();
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
