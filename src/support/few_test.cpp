#include "support/few.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace trireme {
namespace {

std::vector<int> entries(const Few<int>& few) { return {few.begin(), few.end()}; }

TEST(Few, GrowsBeyondWhatItHoldsItself) {
  Few<int> few;
  EXPECT_TRUE(few.empty());
  std::vector<int> wanted;
  for (int k = 0; k < 20; ++k) {
    few.push_back(k);
    wanted.push_back(k);
    EXPECT_EQ(entries(few), wanted);
    EXPECT_EQ(few.back(), k);
  }
  few.resize(5);
  EXPECT_EQ(entries(few), (std::vector{0, 1, 2, 3, 4}));
}

TEST(Few, CopiesShareNothingAndMovesLeaveNothing) {
  for (const Few<int>& from : {Few<int>{}, Few<int>{1}, Few<int>{1, 2}, Few<int>{1, 2, 3}, Few<int>(9, 7)}) {
    Few<int> copy = from;
    EXPECT_EQ(entries(copy), entries(from));
    copy.push_back(5);
    EXPECT_EQ(copy.size(), from.size() + 1);
    Few<int> moved = std::move(copy);
    EXPECT_EQ(moved.size(), from.size() + 1);
    copy = {8, 9, 10};
    EXPECT_EQ(entries(copy), (std::vector{8, 9, 10}));
    copy = static_cast<const Few<int>&>(copy);
    EXPECT_EQ(entries(copy), (std::vector{8, 9, 10}));
    moved = from;
    EXPECT_EQ(entries(moved), entries(from));
  }
}

}  // namespace
}  // namespace trireme
