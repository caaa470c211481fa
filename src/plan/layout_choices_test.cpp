// What of the arrays' places the heuristics go by: only speed depends on it, so that no comparison of bits would show
// that a choice is lost.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "targets/x86/emit.hpp"

namespace trireme {
namespace {

struct Choice {
  Facts facts;
  Config config;
};
Choice choice(const char* line, x86::Isa isa, std::int64_t rows = 1 << 20) {  // beyond the caches
  Problem problem = parse_problem(line).value();
  const Prepared prepared = prepare_problem(problem, {}, Fill::Nothing).value();
  Facts facts = facts_of(prepared.program, prepared.view());
  facts.rows = rows;
  return {facts, choose_config(prepared.program, x86::machine_of(isa), facts)};
}

constexpr x86::Isa both[] = {x86::Isa::Avx2, x86::Isa::Avx512};

// Rows that begin at a register's place now and then would be streamed then, and share lines with others.
TEST(LayoutChoices, StreamsOnlyWhereAllRowsBeginAtRegisters) {
  for (x86::Isa isa : both) {
    EXPECT_TRUE(choice("rms_norm 16x128 x=f32", isa).config.streaming);
    EXPECT_FALSE(choice("rms_norm 16x128 x=f32 y=:129,1", isa).config.streaming);
    EXPECT_TRUE(choice("rms_norm 16x128 x=f32:129,1", isa).config.streaming) << "only results are stored";
    EXPECT_EQ(choice("rms_norm 16x128 x=f32 y=:136,1", isa).config.streaming, isa == x86::Isa::Avx2) << "32 bytes";
    EXPECT_TRUE(choice("rms_norm 16x128 x=bf16 y=:144,1", isa).config.streaming) << "half as wide";
    EXPECT_FALSE(choice("rms_norm 4x4x128 x=f32 y=:516,128,1", isa).config.streaming) << "outer rows";
    EXPECT_TRUE(choice("softmax 16x128 x=f32 y=:1,129", isa).config.streaming) << "copies are lined up";
  }
}

TEST(LayoutChoices, FetchesRowsThatProcessorsDoNotForesee) {
  for (x86::Isa isa : both) {
    const Choice plain = choice("swiglu 16x128 x=f32", isa);
    EXPECT_FALSE(plain.facts.rows_apart);
    EXPECT_FALSE(plain.config.prefetch);
    EXPECT_FALSE(choice("swiglu 16x128 x=f32:129,1", isa).config.prefetch) << "the next line";
    EXPECT_FALSE(choice("swiglu 16x128 x=f32 y=:-128,1", isa).config.prefetch) << "results are not read";
    EXPECT_FALSE(choice("swiglu 16x128 x=f32:0,1", isa).config.prefetch) << "the same row";
    EXPECT_FALSE(choice("swiglu 16x128 x=f32:1,128", isa).facts.rows_apart) << "it is copied";
    for (const char* apart : {"swiglu 16x128 x=f32:-128,1", "swiglu 16x128 x=f32:512,1"}) {
      EXPECT_TRUE(choice(apart, isa).config.prefetch) << apart;
      EXPECT_GT(choice(apart, isa).config.stripes, 0) << apart;
      EXPECT_FALSE(choice(apart, isa, 16).config.prefetch) << apart;
      EXPECT_EQ(choice(apart, isa, 16).config.stripes, choice("swiglu 16x128 x=f32", isa, 16).config.stripes) << apart;
    }
  }
}

}  // namespace
}  // namespace trireme
