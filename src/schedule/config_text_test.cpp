// Configs as text: what is printed is read back; what does not fit is refused.
#include <gtest/gtest.h>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/config.hpp"

namespace trireme {
namespace {

TEST(ConfigText, PrintsWhatItReads) {
  for (const char* text : {"simd lanes=16 unroll=16", "simd lanes=8 unroll=2 streaming prefetch",
                           "simd lanes=16 columns=300 stripes=2 reload hoist",
                           "simd lanes=16 rows=8 unroll=4 prefetch across", "threads lanes=32 columns=40",
                           "threads lanes=32 vector=4 groups=8 cluster=2 rows=3 columns=8192 stripes=2 ring=2 reload "
                           "hoist streaming",
                           "threads lanes=8 vector=2 teams=16 columns=16 stripes=1"}) {
    Result<Config> config = parse_config(text);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(print(*config), text);
  }
  EXPECT_EQ(print(parse_config(" simd  lanes=16 in_place strided backwards ").value()), "simd lanes=16 unroll=16");
}

TEST(ConfigText, RefusesOthers) {
  for (const char* text : {"", "lanes=16", "simd lanes", "simd lanes=", "simd lanes=x", "simd lanes=-1", "simd lanez=4",
                           "simd streaming=1", "simd lanes=99999999999", "simd 16"}) {
    Result<Config> config = parse_config(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, Code::InvalidArgument);
  }
}

TEST(ConfigText, FitsOrIsAnError) {
  Program source = parse("twice(x[i,j]) -> (y[i,j])\n  y = x + x\n").value();
  Program program = prepare(source, {.types = {{"x", Type::F32}, {"y", Type::F32}}}).value();
  auto fits = [&](const char* text, const Machine& machine, const Facts& facts) {
    Facts given = facts;
    given.config = parse_config(text).value();
    Result<Config> config = config_for(program, machine, given);
    return config ? std::string() : config.error().message;
  };
  const Machine simd{.simd = true, .register_bytes = 64};
  const Machine threads{.simd = false, .shared_bytes = 100000, .clusters = false};
  const Facts facts{.rows = 10, .columns = 1000, .alignment = 4};
  EXPECT_EQ(fits("simd lanes=16 unroll=4", simd, facts), "");
  EXPECT_EQ(fits("simd lanes=16 columns=1000 stripes=4 reload hoist", simd, facts), "");
  EXPECT_NE(fits("simd lanes=8", simd, facts), "");
  Facts together = facts;
  together.together = 16;
  EXPECT_EQ(fits("simd lanes=16 rows=2 unroll=8 across", simd, together), "");
  EXPECT_NE(fits("simd lanes=16 rows=2 unroll=8 across", simd, facts), "");
  EXPECT_NE(fits("simd lanes=16 rows=2 unroll=1 across", simd, together), "");
  EXPECT_NE(fits("simd lanes=16 rows=17 unroll=8 across", simd, together), "");
  EXPECT_NE(fits("simd lanes=16 unroll=3", simd, facts), "");
  EXPECT_NE(fits("simd lanes=16 unroll=32", simd, facts), "");
  EXPECT_NE(fits("simd lanes=16 groups=2", simd, facts), "");
  EXPECT_NE(fits("simd lanes=16 columns=999", simd, facts), "");
  EXPECT_NE(fits("simd lanes=16 columns=1000 stripes=2", simd, facts), "");
  EXPECT_NE(fits("simd lanes=16 hoist", simd, facts), "");
  EXPECT_NE(fits("threads lanes=32 columns=1000", simd, facts), "");
  EXPECT_EQ(fits("threads lanes=32 vector=4 groups=4 columns=1000 stripes=1", threads, facts), "");
  EXPECT_EQ(fits("threads lanes=32 columns=1000", threads, facts), "");
  EXPECT_NE(fits("threads lanes=32 vector=8 columns=1000", threads, facts), "");
  EXPECT_NE(fits("threads lanes=32 groups=2 columns=1000 stripes=1", threads, facts), "");
  EXPECT_NE(fits("threads lanes=32 cluster=2 groups=3 columns=1000 stripes=1", threads, facts), "");
  EXPECT_NE(fits("threads lanes=32 groups=64 columns=1000", threads, facts), "");
  EXPECT_NE(fits("simd lanes=16", threads, facts), "");
}

}  // namespace
}  // namespace trireme
