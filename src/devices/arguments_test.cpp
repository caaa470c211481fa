// Where partial sums stand in the workspace.
#include "devices/arguments.hpp"

#include <gtest/gtest.h>

#include "schedule/sum_classes.hpp"

namespace trireme {
namespace {

TEST(Arguments, PartialRowsShareNoSetOfACache) {
  SumClass sums;
  sums.results = {0};
  sums.where.column.present = true;
  for (std::int64_t columns : {1, 64, 65, 1000, 1024, 4096, 131072}) {
    const SumBlocks cut = sum_blocks(sums, 4096, columns);
    EXPECT_GE(cut.stride, columns);
    EXPECT_LT(cut.stride, columns + 2 * 64);
    EXPECT_EQ(cut.stride % 128, 64) << columns;
    EXPECT_EQ(cut.values, cut.blocks[0] * cut.stride);
  }
}

}  // namespace
}  // namespace trireme
