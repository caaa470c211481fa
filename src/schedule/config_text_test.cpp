// Configs as text: what is printed is read back.
#include <gtest/gtest.h>

#include "schedule/config.hpp"

namespace trireme {
namespace {

TEST(ConfigText, PrintsWhatItReads) {
  for (const char* text : {"simd lanes=16 unroll=16", "simd lanes=8 unroll=2 streaming prefetch",
                           "simd lanes=16 columns=300 stripes=2 reload hoist",
                           "simd lanes=16 rows=8 unroll=4 prefetch across", "threads lanes=32 columns=40",
                           "threads lanes=32 vector=4 groups=8 cluster=2 rows=3 columns=8192 stripes=2 ring=2 reload "
                           "hoist streaming",
                           "threads lanes=8 vector=2 teams=16 columns=16 stripes=1 entries streaming"}) {
    Result<Config> config = parse_config(text);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(print(*config), text);
  }
  EXPECT_EQ(print(parse_config(" simd  lanes=16 in_place strided backwards ").value()), "simd lanes=16 unroll=16");
}

TEST(ConfigText, RefusesOthers) {
  for (const char* text : {"", "lanes=16", "simd lanes", "simd lanes=", "simd lanes=x", "simd lanes=-1", "simd lanez=4",
                           "simd streaming=1", "simd lanes=99999999999", "simd 16", "simd threads lanes=16",
                           "simd lanes=16 lanes=8", "simd lanes=16 hoist hoist"}) {
    Result<Config> config = parse_config(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, Code::InvalidArgument);
  }
}

}  // namespace
}  // namespace trireme
