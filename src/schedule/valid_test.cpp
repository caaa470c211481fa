// Every rule of a schedule, and its reason.
#include "schedule/valid.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/candidates.hpp"
#include "schedule/options.hpp"

namespace trireme {
namespace {

Program bound(const char* text) {
  return prepare(parse(text).value(), {.types = {{"x", Type::F32}, {"y", Type::F32}}}).value().expanded;
}
Program norm() { return bound("norm(x[i,j]) -> (y[i,j])\n  y = x * rsqrt(mean(x * x) + 1)\n"); }

struct Rule {
  const char* config;
  const char* reason;  // a part of it; empty: valid
};

void check(const Program& program, const Machine& machine, const Facts& facts, std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules) {
    const Status status = valid(program, parse_config(rule.config).value(), machine, facts);
    if (!*rule.reason) {
      EXPECT_TRUE(status) << rule.config << ": " << status.error().message;
      continue;
    }
    ASSERT_FALSE(status) << rule.config;
    EXPECT_NE(status.error().message.find(rule.reason), std::string::npos) << status.error().message;
  }
}

TEST(Valid, simd) {
  check(norm(), {.simd = true, .register_bytes = 64}, {.rows = 10, .columns = 1000, .alignment = 4},
        {{"simd lanes=16 unroll=4", ""},
         {"simd lanes=16 columns=1000 stripes=4 rows=2 reload hoist", ""},
         {"simd lanes=16 columns=1000 stripes=4 rows=3", "1 or 2 goes with stripes"},
         {"simd lanes=8", "this machine has 16 in f32"},
         {"simd lanes=16 unroll=3", "a power of two from 1 to 128"},
         {"simd lanes=16 unroll=32", "a power of two up to 16"},
         {"simd lanes=16 columns=999", "the problem has 1000"},
         {"simd lanes=16 columns=1000 stripes=2", "may be unrolled"},
         {"simd lanes=16 stripes=4", "stripes needs columns=N"},
         {"simd lanes=16 rows=2 unroll=8 across", "lie side by side"},
         {"simd lanes=16 rows=33 unroll=8 across", "1 to 32 goes with across"},
         {"simd lanes=16 unroll=1 across", "2, 4, 8 or 16 goes with across"},
         {"simd lanes=16 columns=1000 across", "any number of them goes with across"},
         {"simd lanes=16 columns=1000 tile=32", "up to 16 go, the lanes"},
         {"simd lanes=16 tile=8", "tile needs columns=N"},
         {"simd lanes=16 columns=1000 tile=8", "rows i / m and i % m"},
         {"threads lanes=32 columns=1000", "this machine takes simd"}});
}

TEST(Valid, threads) {
  const Machine alone{.simd = false, .shared_bytes = 100000},
      clusters{.simd = false, .shared_bytes = 100000, .clusters = true};
  const Facts facts{.rows = 10, .columns = 1000, .alignment = 4};
  check(norm(), alone, facts,
        {{"threads lanes=32 vector=4 groups=4 columns=1000 stripes=1", ""},
         {"threads lanes=32 columns=1000", ""},
         {"threads lanes=2 columns=1000", ""},
         {"threads lanes=1 columns=1000", "meet across lanes"},
         {"threads lanes=1 columns=1000 stripes=4", ""},
         {"threads lanes=32 columns=1000 stripes=4 ring=2 stage", ""},
         {"threads lanes=32 vector=8 columns=1000", "a power of two up to 4"},
         {"threads lanes=24 columns=1000", "lanes=24; a power of two"},
         {"threads lanes=64 columns=1000", "a power of two up to 32"},
         {"threads lanes=16 groups=2 columns=1000", "groups have 32 each"},
         {"threads lanes=32 groups=64 columns=1000", "1 to 1024 threads"},
         {"threads lanes=32 groups=2 columns=1000 stripes=1", "do not hold the row"},
         {"threads lanes=32 groups=2 cluster=2 columns=1000 stripes=1", "for machines that have clusters"},
         {"threads lanes=32 columns=1000 stripes=4 ring=9", "ring=9; 2 to 8"},
         {"threads lanes=32 columns=1000 stripes=4 stage", "stage needs a ring"},
         {"threads lanes=32 columns=1000 stripes=4 resident=33", "resident=33; 1 to 32"},
         {"threads lanes=32 groups=8 columns=1000 stripes=1 resident=8", ""},
         {"threads lanes=32 groups=8 columns=1000 stripes=1 resident=9", "a processor holds 2048 threads"},
         {"threads lanes=32 columns=1000 rows=0", "rows=0; 1 to"},
         {"threads lanes=32 groups=2 teams=2 columns=1000 stripes=2", "share a block, not a row"},
         {"threads lanes=32 groups=16 columns=1000 stripes=64 ring=8", "bytes of shared memory"},
         {"simd lanes=16", "this machine takes threads"}});
  check(norm(), clusters, facts,
        {{"threads lanes=32 groups=2 cluster=2 columns=1000 stripes=1", ""},
         {"threads lanes=32 groups=3 cluster=2 columns=1000 stripes=1", "a power of two up to 32 goes in a cluster"},
         {"threads lanes=32 cluster=17 columns=1000 stripes=1", "1 to 16"}});
  // One row of one stripe has nothing to meet.
  check(norm(), alone, {.rows = 10, .columns = 256, .alignment = 4}, {{"threads lanes=1 columns=256", ""}});
}

// An option that means nothing in a kind of schedule is not passed over in silence.
TEST(Valid, OptionsOfOtherKinds) {
  const Program program = norm();
  const Facts facts{.rows = 64, .columns = 1000, .alignment = 4, .together = 64};
  constexpr std::string_view schedules[] = {"simd lanes=16",
                                            "simd lanes=16 columns=1000 stripes=4",
                                            "simd lanes=16 across",
                                            "simd lanes=16 columns=1000 tile=8",
                                            "threads lanes=32 columns=1000",
                                            "threads lanes=32 columns=1000 stripes=4",
                                            "threads lanes=32 columns=1000 tile=8"};
  for (std::size_t kind = 0; kind < std::size(schedules); ++kind)
    for (const Option& option : schedule_options) {
      Config config = parse_config(schedules[kind]).value();
      EXPECT_EQ(kind_of(config), 1u << kind) << schedules[kind];
      if (option.said(config)) continue;
      const ScheduleKind before = kind_of(config);
      if (option.flag) config.*option.flag = true;
      else config.*option.number = option.most;
      const Machine machine{.simd = config.simd, .register_bytes = 64, .shared_bytes = 100000};
      const Status status = valid(program, config, machine, facts);
      const std::string refusal = std::string(option.name) + " is for ";
      const bool refused = !status && status.error().message.find(refusal) != std::string::npos;
      const bool its_own =
          (option.kinds & before) != 0 || (kind_of(config) != before && (option.kinds & kind_of(config)));
      EXPECT_EQ(refused, !its_own) << print(config) << ": " << (status ? "valid" : status.error().message);
    }
}

TEST(Valid, Compact) {
  const Facts facts{.rows = 10, .columns = 1000};
  check(norm(), {.simd = true, .register_bytes = 16}, facts,
        {{"simd lanes=4 unroll=1 compact", ""},
         {"simd lanes=4 unroll=2 compact", "a sweep's code stands once"},
         {"simd lanes=4 unroll=1 compact streaming", "a sweep's code stands once"},
         {"simd lanes=4 columns=1000 stripes=4 compact", "compact is for simd in loops"}});
  // A machine without SIMD holds one value of any type.
  check(norm(), {.simd = true, .register_bytes = 4}, facts,
        {{"simd lanes=1 unroll=1 compact", ""}, {"simd lanes=1 unroll=1", "loops are compact then"}});
}

TEST(Valid, LongCode) {
  const Machine machine{.simd = false, .shared_bytes = 100000};
  const Facts facts{.rows = 10, .columns = 16384, .alignment = 4};
  check(norm(), machine, facts,
        {{"threads lanes=1 columns=16384 stripes=64", "stripes: 16384 elements unrolled"},
         {"threads lanes=32 vector=4 columns=16384 stripes=64", ""}});
}

TEST(Valid, entries) {
  const Machine machine{.simd = false, .shared_bytes = 100000};
  const Facts facts{.rows = 12, .columns = 100, .alignment = 4};
  const char* schedule = "threads lanes=32 columns=100 stripes=1 entries";
  check(bound("p(x[i,j]) -> (y[i / 4, j])\n  y = colsum(x)\n"), machine, facts,
        {{schedule, ""}, {"threads lanes=32 columns=100 entries", "entries is for threads with stripes"}});
  for (const char* spread : {"j", "i % 4, j", "(i / 2) % 3, j", "i / 4, j / 2", ""})
    check(bound(fmt::format("p(x[i,j]) -> (y[{}])\n  y = colsum(x)\n", spread).c_str()), machine, facts,
          {{schedule, "sums go to entries of rows i / d"}});
}

// What is enumerated is valid, and there is something for every width on machines with and without clusters.
TEST(Valid, candidates) {
  for (const Program& program : {norm(), bound("twice(x[i,j]) -> (y[i,j])\n  y = x + x\n")})
    for (bool has_clusters : {false, true})
      for (std::int64_t columns : {1, 3, 64, 255, 257, 4096, 5000, 131072, 300001}) {
        const Machine machine{.simd = false, .shared_bytes = 232448, .clusters = has_clusters, .processors = 132};
        const Facts facts{
            .rows = 4096, .columns = columns, .alignment = std::min<std::int64_t>(16, columns & -columns)};
        const std::vector<Config> all = candidate_configs(program, machine, facts);
        EXPECT_GE(all.size(), 1u) << columns;
        for (std::size_t k = 0; k < all.size(); k += 1 + all.size() / 50)
          EXPECT_TRUE(valid(program, all[k], machine, facts)) << print(all[k]);
      }
}

}  // namespace
}  // namespace trireme
