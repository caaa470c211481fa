#include "drift/align.hpp"

#include <gtest/gtest.h>

#include <string>

namespace trireme::drift {
namespace {

// Letters are operators, capitals modules; a step is like another of its letter, and more so where `values` agree.
std::string aligned(const std::string& a, const std::string& b, const std::string& values_a = "",
                    const std::string& values_b = "") {
  auto steps = [](const std::string& text, const std::string& values) {
    Steps made;
    for (std::size_t k = 0; k < text.size(); ++k) {
      made.keys.push_back(text[k]), made.anchors.push_back(text[k] >= 'A' && text[k] <= 'Z');
      made.values.push_back(values.empty() ? 0 : static_cast<unsigned char>(values[k]));
    }
    return made;
  };
  std::string out;
  auto likeness = [&](std::size_t i, std::size_t j) { return !values_a.empty() && values_a[i] == values_b[j] ? 4 : 1; };
  for (const auto& [i, j] : align(steps(a, values_a), steps(b, values_b), likeness, 4))
    out += std::to_string(i) + "=" + std::to_string(j) + " ";
  return out;
}

TEST(Align, OneByOne) {
  EXPECT_EQ(aligned("abcM", "abcM"), "0=0 1=1 2=2 3=3 ");
  EXPECT_EQ(aligned("", "ab"), "");
  EXPECT_EQ(aligned("ab", "cd"), "");
}

TEST(Align, LeftOutAndAdded) {
  EXPECT_EQ(aligned("abcM", "acM"), "0=0 2=1 3=2 ");
  EXPECT_EQ(aligned("abM", "axbyM"), "0=0 1=2 2=4 ");
}

TEST(Align, ValuesSayWhichOfTwo) {
  EXPECT_EQ(aligned("aaM", "aM", "12m", "2m"), "1=0 2=1 ");
  EXPECT_EQ(aligned("aaM", "aM", "12m", "1m"), "0=0 2=1 ");
}

TEST(Align, LongRunsByTheirModules) {
  std::string a, b;
  for (int k = 0; k < 3000; ++k) a += "xyM", b += k % 2 ? "xzM" : "xyM";  // too much for one table
  const std::string pairs = aligned(a, b);
  EXPECT_EQ(std::count(pairs.begin(), pairs.end(), '='), 3000 * 2 + 1500);
}

TEST(Align, LongRunsWithAModuleMore) {
  std::string a, b, values_a, values_b;
  for (int k = 0; k < 2000; ++k) {
    if (k == 10) b += "xM", values_b += "\xff\xff";  // every later call of M has another number
    for (std::string* each : {&a, &b}) *each += "xM";
    for (std::string* each : {&values_a, &values_b}) each->append(2, static_cast<char>(k % 251));
  }
  a += "y", b += "z", values_a += "1", values_b += "1";
  std::size_t same = 0, at = 0;
  const std::string pairs = aligned(a, b, values_a, values_b);
  while ((at = pairs.find('=', at)) != pairs.npos) {
    const std::size_t i = std::stoul(pairs.substr(pairs.rfind(' ', at) + 1)), j = std::stoul(pairs.substr(++at));
    same += values_a[i] == values_b[j];
  }
  EXPECT_EQ(same, 4000u);
}

TEST(Align, LongRunsWithoutModules) {
  const std::string a(3000, 'x'), b(2999, 'x');
  const std::string pairs = aligned(a, b + "y");
  EXPECT_EQ(std::count(pairs.begin(), pairs.end(), '='), 2999);
}

}  // namespace
}  // namespace trireme::drift
