// The cost model: what it must see of a schedule, whatever its figures; and the tables of what was measured.
#include "schedule/cost.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/choose.hpp"
#include "schedule/tuned.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

const Machine& h200() {
  static const Machine machine = find_target("ptx").value()->machine("sm_90").value();
  return machine;
}
Program norm() {
  return prepare(parse("norm(x[i,j], g[j]) -> (y[i,j])\n  y = x * rsqrt(mean(x * x) + 1) * g\n").value(),
                 {.types = {{"x", Type::BF16}, {"g", Type::BF16}, {"y", Type::BF16}}})
      .value()
      .expanded;
}
double seconds(const char* config, const Facts& facts) {
  return ThreadCost(norm(), h200(), facts)(parse_config(config).value());
}

TEST(Cost, SeesWhatBounds) {
  const Facts many{.rows = 65536, .columns = 4096, .alignment = 16};
  const double good = seconds("threads lanes=32 vector=4 groups=4 columns=4096 stripes=4 streaming", many);
  const double bytes = 65536.0 * 4096 * 4;
  EXPECT_GT(good, bytes / 4.8e12);  // what the memory could do at best
  EXPECT_LT(good, bytes / 3.0e12);
  // Elements one by one; the row read twice; blocks of a cluster for a row that one block holds.
  EXPECT_GT(seconds("threads lanes=32 groups=4 columns=4096 stripes=4 streaming", many), good);
  EXPECT_GT(seconds("threads lanes=32 vector=4 groups=32 columns=4096 streaming", many), good);
  EXPECT_GT(seconds("threads lanes=32 vector=4 cluster=16 columns=4096 stripes=1 streaming", many), good);
  // Registers for 64 stripes of a row are none that a thread has; shared memory for a ring of 8 is none that a block
  // has.
  const Facts wide{.rows = 2048, .columns = 131072, .alignment = 16};
  EXPECT_GT(seconds("threads lanes=32 vector=4 groups=8 columns=131072 stripes=64 streaming", wide),
            seconds("threads lanes=32 vector=4 groups=8 cluster=8 columns=131072 stripes=8 streaming", wide));
  EXPECT_TRUE(
      std::isinf(seconds("threads lanes=32 vector=4 groups=16 columns=131072 stripes=32 ring=8 streaming", wide)));
}

// A long row's groups that stay in a warp's registers leave its stripes to as many blocks as are wanted; terms of
// others lie in one block's scratch.
TEST(Cost, GroupsInRegistersTakeClusters) {
  const Facts wide{.rows = 2048, .columns = 131072, .alignment = 16};
  auto cluster = [&](const std::string& group) {
    const std::string text = "f(x[i,j]) -> (y[i,j])\n  y = x * rsqrt(mean(x * x)) * amax(abs(x), " + group + ")\n";
    const Binding binding{.types = {{"x", Type::BF16}, {"y", Type::BF16}}, .columns = wide.columns};
    return choose_config(prepare(parse(text).value(), binding).value().expanded, h200(), wide).cluster;
  };
  EXPECT_GT(cluster("j / 32"), 1);
  EXPECT_GT(cluster("j / 256"), 1);
  EXPECT_EQ(cluster("j / 48"), 1);
  EXPECT_EQ(cluster("j % 32"), 1);
}

TEST(Cost, FewRowsWantManyThreads) {
  const Facts few{.rows = 8, .columns = 8192, .alignment = 16};
  EXPECT_GT(seconds("threads lanes=32 vector=4 groups=4 columns=8192 stripes=8 rows=4 ring=2 streaming", few),
            seconds("threads lanes=32 vector=4 groups=16 columns=8192 stripes=2 streaming", few));
  const Config chosen = choose_for_threads(norm(), h200(), few);
  EXPECT_GE(chosen.groups * chosen.cluster * chosen.lanes, 512) << print(chosen);
  EXPECT_EQ(chosen.rows, 1) << print(chosen);
}

TEST(Tuned, LinesReadAsTheyPrint) {
  for (bool model : {false, true}) {
    const TunedLine line{0.973,
                         1.21,
                         problem_class(norm(), h200(), {.rows = 4096, .columns = 4096}),
                         model,
                         parse_config("threads lanes=32 vector=4 groups=4 columns=4096 stripes=4 streaming").value(),
                         "norm 4096x4096"};
    const TunedLine read = parse_tuned_line(print(line)).value();
    EXPECT_EQ(print(read), print(line));
    EXPECT_EQ(read.config.columns, 4096);
  }
  for (const char* wrong : {"", "0.9", "0.9 1.0", "0.9 1.0  read=2", "0.9 1.0  read=2  lanes=32  # p", "# comment",
                            "0.9 1.0  read=2  threads lanes=32"})
    EXPECT_FALSE(parse_tuned_line(wrong)) << wrong;
}

TEST(Tuned, TablesKeepTheFaster) {
  TunedLines lines;
  TunedLine line{.share = 0.8,
                 .of_chosen = 1.1,
                 .problem_class = "read=2",
                 .config = parse_config("threads lanes=32 columns=512").value(),
                 .problem = "p 8x512"};
  add_tuned(lines, line);
  line.share = 0.7, line.config.groups = 2;
  add_tuned(lines, line);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines.begin()->second.config.groups, 1);
  line.share = 0.9, line.of_chosen = 1.01, line.config.columns = 1024;  // not worth it: the chosen one's own share
  add_tuned(lines, line);
  EXPECT_TRUE(lines.rbegin()->second.model);
  EXPECT_NEAR(lines.rbegin()->second.share, 0.9 / 1.01, 1e-9);
  EXPECT_EQ(print_tuned(read_tuned(print_tuned(lines, "paper")).value(), "paper"), print_tuned(lines, "paper"));
  EXPECT_FALSE(read_tuned("nonsense\n"));
}

// A second search finds the known schedule again, some percent faster or slower by chance.
TEST(Tuned, ASecondSearchErasesNothing) {
  TunedLines lines;
  TunedLine line{.share = 0.9,
                 .of_chosen = 1.5,
                 .problem_class = "read=2",
                 .config = parse_config("threads lanes=32 columns=512").value(),
                 .problem = "p 8x512"};
  add_tuned(lines, line);
  const std::string known = print(lines.begin()->second);
  line.share = 0.91, line.of_chosen = 1.51;
  add_tuned(lines, line);
  EXPECT_EQ(print(lines.begin()->second), known);
  line.of_chosen = 1;  // held against itself
  add_tuned(lines, line);
  EXPECT_EQ(print(lines.begin()->second), known);
}

// Tables of simd machines: lines are of large arrays side by side, and loops are for any number of columns.
TEST(Tuned, SimdMachinesReadTheirTable) {
  const Machine machine = find_target("x86").value()->machine("avx2").value();
  EXPECT_EQ(machine.tuned, "avx2");
  Facts facts{.rows = 65536, .columns = 4096, .alignment = 16};
  auto taken = [&](const std::string& schedule) {
    const std::string of_class = problem_class(norm(), machine, facts);
    std::size_t number = 300;  // words of other lines come before
    std::string words;
    for (std::size_t k = 0; k < number; ++k) words += "other ";
    words += of_class + " " + schedule;
    std::vector<std::uint8_t> lines;
    for (const std::string& line : {std::string(), of_class, schedule}) {
      for (auto k = line.empty() ? 0 : 1 + std::count(line.begin(), line.end(), ' '); k > 0; --k) {
        lines.insert(lines.end(), ++number / 255, 255);
        lines.push_back(static_cast<std::uint8_t>(number % 255));
      }
      lines.push_back(0);
    }
    const std::optional<Config> config = tuned_config({"avx2", words, lines}, norm(), machine, facts);
    return config ? print(*config) : "none";
  };
  EXPECT_EQ(taken("simd lanes=8 columns=4096 unroll=2 streaming"), "simd lanes=8 unroll=2 streaming");
  EXPECT_EQ(taken("simd lanes=8 columns=1024 unroll=2 streaming"), "none");  // columns too far
  EXPECT_EQ(taken("model columns=4096"), "none");
  EXPECT_EQ(taken("simd lanes=16 columns=4096 unroll=2"), "none");  // not valid here
  facts.rows = 16;                                                  // in the caches
  EXPECT_EQ(taken("simd lanes=8 columns=4096 unroll=2 streaming"), "none");
  facts.rows = 1 << 20, facts.columns = 200;
  EXPECT_EQ(taken("simd lanes=8 columns=256 stripes=1 hoist"), "simd lanes=8 columns=200 stripes=1 hoist");
  facts.columns = 300;
  EXPECT_EQ(taken("simd lanes=8 columns=260 stripes=2 reload"), "simd lanes=8 columns=300 stripes=2 reload");
  facts.in_place = true;
  EXPECT_EQ(taken("simd lanes=8 columns=300 stripes=2 reload"), "none");
}

TEST(Tuned, SchedulesAreDealtOutToOtherColumns) {
  auto dealt = [](const char* config, std::int64_t columns) {
    return print(with_columns(parse_config(config).value(), columns));
  };
  EXPECT_EQ(dealt("threads lanes=32 vector=4 groups=4 columns=4096 stripes=4", 5000),
            "threads lanes=32 vector=4 groups=5 columns=5000 stripes=4");
  EXPECT_EQ(dealt("threads lanes=32 vector=4 groups=8 cluster=4 columns=32768 stripes=4 ring=2", 36864),
            "threads lanes=32 vector=4 groups=8 cluster=5 columns=36864 stripes=4 ring=2");
  EXPECT_EQ(dealt("threads lanes=32 vector=4 teams=4 columns=1024 stripes=4", 1200),
            "threads lanes=32 vector=4 groups=2 columns=1200 stripes=4");
  EXPECT_EQ(dealt("threads lanes=8 vector=8 teams=16 columns=128 stripes=1", 96),
            "threads lanes=8 vector=8 teams=16 columns=96 stripes=1");
}

}  // namespace
}  // namespace trireme
