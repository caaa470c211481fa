// Kernels that take columns backwards where they lie: the reference's bits, also for other strides that their plans
// accept.
#include "plan/plan_for_test.hpp"
#include "plan/random_layouts_for_test.hpp"

namespace trireme {
namespace {

// Arrays per element: backwards, plain or, seldom, columns apart; rows in one order or the other, with gaps. Weights
// backwards, seldom.
RandomLayouts::Placements backwards(const Program& bound, const Dims& shape, Random& random) {
  const std::int64_t outer = shape[0], inner = shape[1], columns = shape[2];
  RandomLayouts::Placements places;
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

RandomLayouts layouts(int& taken) {
  return {.outers = {1, 2, 3},
          .inners = {1, 2, 3, 5, 8, 13, 30},
          .columns = {2, 3, 7, 15, 16, 17, 31, 64, 100, 128, 255, 256, 257, 300, 512, 513, 1030},
          .wanted = [](const Program&) { return true; },
          .place = backwards,
          .device = [&](const DeviceEntry& device, Random& random) { return any_config(device, random, taken); }};
}

TEST(Backwards, EveryOperatorOverTypesShapesAndLayouts) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  int taken = 0;
  layouts(taken).every_operator(std::getenv("LONG") ? 200 : 6);
  EXPECT_GT(taken, 300);
}

TEST(Backwards, RandomPrograms) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  int taken = 0;
  layouts(taken).random_programs(std::getenv("LONG") ? 100000 : 400);
  EXPECT_GT(taken, 100);
}

// A plan is made for columns apart, and takes whatever strides do that.
TEST(Backwards, PlansTakeOtherStridesToo) {
  constexpr std::int64_t rows = 48, columns = 300;
  PlanOptions options{.program = rms_norm(), .shape = {rows, columns}};
  options.strides = {{"x", {columns, -1}}, {"y", {columns, -1}}};
  Plan plan = Plan::create(cpu(), options).value();
  if (!no_cpu().empty()) GTEST_SKIP() << "no AVX2: " << plan.describe();
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
    EXPECT_TRUE(!turn || !no_cpu().empty() || plan.describe().find("taken where they lie") != std::string::npos)
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
