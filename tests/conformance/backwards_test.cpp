// Kernels that take columns backwards where they lie: the reference's bits, also for other strides that their plans
// accept.
#include "random_layouts_for_test.hpp"
#include "schedule/options.hpp"
#include "strided_plans_for_test.hpp"

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
DeviceEntry reversed_config(const DeviceEntry& device, Random& random, Taken& taken) {
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
      for (const Option& option : schedule_options) {
        if (option.kinds & kind_of(config)) continue;  // the others are refused
        if (option.flag) config.*option.flag = false;
        else config.*option.number = option.unsaid;
      }
      given.config = config;
    }
    TRIREME_TRY(made, device.compile(program, given));
    taken[device.name] += made->describe().find("columns backwards, taken where they lie") != std::string::npos;
    return std::move(made);
  };
  return changed;
}

RandomLayouts reversed_layouts(Taken& taken) {
  return {.outers = {1, 2, 3},
          .inners = {1, 2, 3, 5, 8, 13, 30},
          .columns = {2, 3, 7, 15, 16, 17, 31, 64, 100, 128, 255, 256, 257, 300, 512, 513, 1030},
          .wanted = [](const Program&) { return true; },
          .place = backwards,
          .device = [&](const DeviceEntry& device, Random& random) { return reversed_config(device, random, taken); }};
}

TEST(Backwards, EveryOperatorOverTypesShapesAndLayouts) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  Taken taken;
  reversed_layouts(taken).every_operator(std::getenv("LONG") ? 200 : 6);
  expect_taken(taken, 150);
}

TEST(Backwards, RandomPrograms) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  Taken taken;
  reversed_layouts(taken).random_programs(std::getenv("LONG") ? 100000 : 400);
  expect_taken(taken, 50);
}

TEST(Backwards, PlansTakeOtherStridesToo) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  expect_other_strides({48, 300}, {300, -1}, {{300, -1}, {303, -1}, {300, 1}, {600, -2}, {1, 48}},
                       "taken where they lie; with other strides columns apart, copied: x, y");
}

TEST(Backwards, InPlace) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  expect_in_place({37, 270}, {270, -1}, "taken where they lie");
}

}  // namespace
}  // namespace trireme
