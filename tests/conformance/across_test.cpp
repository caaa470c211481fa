// Kernels whose lanes are rows (schedule/across.hpp): the reference's bits for arrays whose rows lie side by side, and
// for other strides that their plans accept.
#include "schedule/across.hpp"

#include "ir/contract.hpp"
#include "random_layouts_for_test.hpp"
#include "strided_plans_for_test.hpp"

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
DeviceEntry row_vectorised_config(const DeviceEntry& device, Random& random, Taken& taken) {
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
      ++taken[device.name];
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

RandomLayouts row_vectorised_layouts(Taken& taken) {
  return {.outers = {1, 2, 3},
          .inners = {16, 17, 31, 33, 64, 100, 130, 200, 261},
          .columns = {1, 2, 3, 7, 17, 64, 128, 255, 256, 257, 300, 513, 1030},
          .wanted = goes_across,
          .place = side_by_side,
          .device = [&](const DeviceEntry& device, Random& random) {
            return row_vectorised_config(device, random, taken);
          }};
}

TEST(Across, EveryOperatorOverTypesShapesAndLayouts) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  Taken taken;
  row_vectorised_layouts(taken).every_operator(std::getenv("LONG") ? 200 : 6);
  expect_taken(taken, 75);
}

// 2048 rows and more have row blocks that registers of rows fit; their last one may be shorter.
TEST(Across, SumsOverRows) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  Taken taken;
  RandomLayouts many = row_vectorised_layouts(taken);
  many.outers = {3, 21};
  many.inners = {100, 701, 2048, 2100};
  many.columns = {2, 7, 16, 33, 128, 257};
  many.wanted = [](const Program& program) {
    return goes_across(program) && std::any_of(program.results.begin(), program.results.end(),
                                               [](const Output& result) { return !result.spread.row.present; });
  };
  many.every_operator(std::getenv("LONG") ? 100 : 6);
  expect_taken(taken, 20);
}

TEST(Across, RandomPrograms) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  Taken taken;
  row_vectorised_layouts(taken).random_programs(std::getenv("LONG") ? 100000 : 400);
  expect_taken(taken, 50);
}

TEST(Across, PlansTakeOtherStridesToo) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  expect_other_strides({48, 300}, {1, 48}, {{1, 48}, {300, 1}, {600, 2}, {1, 55}}, "across");
}

TEST(Across, InPlace) {
  if (!no_cpu().empty()) GTEST_SKIP() << no_cpu();
  expect_in_place({37, 270}, {1, 37}, "across");
}

}  // namespace
}  // namespace trireme
