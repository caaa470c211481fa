#include "layout/indexing.hpp"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Shares, SayWhichIndicesLandOnAnEntry) {
  for (AxisIndexing axis : {AxisIndexing{},
                            {.present = true},
                            {.present = true, .divide = 3},
                            {.present = true, .wrap = 4},
                            {.present = true, .divide = 3, .wrap = 2}})
    for (std::int64_t count : {0, 1, 2, 3, 6, 7, 12, 13, 29}) {
      Shares shares = shares_of(axis, count);
      for (std::int64_t entry = 0; entry < axis.extent(count); ++entry) {
        std::int64_t k = 0;
        for (std::int64_t i = 0; i < count; ++i)
          if (axis.entry(i) == entry) {
            EXPECT_EQ(i, shares.index(entry, k));
            ++k;
          }
        EXPECT_EQ(k, shares.count(entry)) << axis.divide << ' ' << axis.wrap << ' ' << count << ' ' << entry;
      }
    }
}

}  // namespace
}  // namespace trireme
