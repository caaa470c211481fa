#include "support/parse_number.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>

namespace trireme {
namespace {

#if defined(__cpp_lib_to_chars)
void same(const std::string& text, bool hexadecimal) {
  double wanted = 1.5, got = 1.5;
  const auto format = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  const auto want = std::from_chars(text.data(), text.data() + text.size(), wanted, format);
  const auto have = parse_f64_by_strtod(text, got, hexadecimal);
  EXPECT_EQ(have.ec, want.ec) << text;
  EXPECT_EQ(have.ptr - text.data(), want.ptr - text.data()) << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(wanted)) << text;
}

TEST(ParseNumber, AsFromChars) {
  for (const char* text : {"",
                           "-",
                           ".",
                           "-.",
                           "1",
                           "-1",
                           "+1",
                           " 1",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "1e5",
                           "1E-5",
                           "1e-400",
                           "-1e-400",
                           "1e400",
                           "-1e400",
                           "0e999",
                           "4.9e-324",
                           "2e-324",
                           "2.4703282292062327e-324",
                           "2.4703282292062328e-324",
                           "1.7976931348623157e308",
                           "1.7976931348623159e308",
                           "inf",
                           "-INF",
                           "infinity",
                           "Infin",
                           "nan",
                           "-nan",
                           "0x10",
                           "1.2.3",
                           "2x",
                           "00012",
                           "0.1",
                           "9007199254740993",
                           "123456789012345678901234567890e-20"})
    same(text, false);
  for (const char* text : {"", "1", "1.8p3", "ap-1", "A.Fp+2", "p1", ".8", "1p", "1p-1074", "1p-1075", "1p-1076",
                           "1p1024", "-1p1023", "1.fffffffffffff8p0", "0x1p1"})
    same(text, true);
}

TEST(ParseNumber, AsFromCharsAtRandom) {
  std::mt19937 dice(1);
  const auto pick = [&](std::string_view letters) { return letters[dice() % letters.size()]; };
  for (int k = 0; k < 20000; ++k) {
    std::string text;
    for (std::size_t length = dice() % 24; text.size() < length;)
      text += pick("0123456789012345678901234567890123.-e+");
    same(text, false);
    for (char& c : text)
      if (c == 'e') c = pick("pa");
    if (text.find("p+-") == text.npos) same(text, true);  // libstdc++ takes both signs
  }
}
#endif

}  // namespace
}  // namespace trireme
