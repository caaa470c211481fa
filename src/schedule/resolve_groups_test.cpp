// Which groups of columns kernels keep in registers.
#include "schedule/resolve_groups.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/lower.hpp"
#include "schedule/sum_classes.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

Program bound(const std::string& text, std::int64_t columns) {
  return prepare(parse(text).value(),
                 {.types = {{"x", Type::F32}, {"y", Type::F32}, {"r", Type::F32}}, .columns = columns})
      .value()
      .expanded;
}
std::string norm_of_groups(int by) {
  return fmt::format("g(x[i,j]) -> (y[i,j], r[i, j / {0}])\n  r = rsqrt(mean(x * x, j / {0}) + 1)\n  y = x * r\n", by);
}

TEST(Groups, AreStripesWhereShufflesWouldNotReachAllOfThem) {
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(96), 3072), 3072), 96);
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(96), 3100), 3100), 96);
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(128), 3072), 3072), 0);
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(300), 3072), 3072), 0);  // as a row's stripes, through scratch
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(96), 64), 64), 0);       // the row
  // Rule 4 says in which order the row itself is summed.
  const std::string row = "g(x[i,j]) -> (y[i,j], r[i])\n  r = sum(x)\n  y = x * r + sum(x, j / 96)\n";
  EXPECT_EQ(group_of_stripes(bound(row, 3072), 3072), 0);
}

// No sweep ends with groups, on any machine: their reductions are shuffles.
TEST(Groups, UpTo256ColumnsStayInRegisters) {
  for (int by : {2, 7, 16, 24, 48, 80, 96, 100, 128, 192, 250, 256})
    for (std::int64_t columns : {768, 896, 1000, 3072})
      for (const Target* target : targets()) {
        const Program program = bound(norm_of_groups(by), columns);
        const Machine machine = target->machine(target->default_arch).value();
        Facts facts{.rows = 4096, .columns = columns, .alignment = columns & -columns};
        const Config config = choose_config(program, machine, facts);
        std::optional<Program> made;
        const Program& resolved = resolve_groups(program, columns, made);
        const Stages stages = split_into_stages(resolved, {}, groups_in_chunks(resolved, config));
        EXPECT_FALSE(stages.sums_groups()) << by << " of " << columns << " " << target->name << " " << print(config);
      }
}

}  // namespace
}  // namespace trireme
