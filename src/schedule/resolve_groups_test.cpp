// Which groups of columns kernels keep in registers.
#include "schedule/resolve_groups.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/groups_apart.hpp"
#include "schedule/lower.hpp"
#include "schedule/sum_classes.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

Program bound(const std::string& text, std::int64_t columns) {
  const Program program = parse(text).value();
  std::map<std::string, Type> types;
  for (std::size_t k = 0; k < program.array_count(); ++k) types[program.array(k).name] = Type::F32;
  return prepare(program, {.types = types, .columns = columns}).value().expanded;
}
std::string norm_of_groups(int by) {
  return fmt::format("g(x[i,j]) -> (y[i,j], r[i, j / {0}])\n  r = rsqrt(mean(x * x, j / {0}) + 1)\n  y = x * r\n", by);
}

TEST(Groups, AreStripesWhereShufflesWouldNotReachAllOfThem) {
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(96), 3072), 3072), 96);
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(96), 3100), 3100), 96);
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(128), 3072), 3072), 0);
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(300), 3072), 3072), 0);  // as a row's stripes, through scratch
  EXPECT_EQ(group_of_stripes(bound(norm_of_groups(96), 64), 64), 0);       // the row
  // Rule 4 says in which order the row itself is summed.
  const std::string row = "g(x[i,j]) -> (y[i,j], r[i])\n  r = sum(x)\n  y = x * r + sum(x, j / 96)\n";
  EXPECT_EQ(group_of_stripes(bound(row, 3072), 3072), 0);
  // Threads have the same few remainders in all their stripes, whatever their vector.
  auto wrapped = [](int by, std::int64_t columns) {
    const std::string text =
        fmt::format("g(x[i,j]) -> (y[i,j], r[i, j % {0}])\n  r = sum(x, j % {0})\n  y = x * r\n", by);
    return group_of_stripes(bound(text, columns), columns);
  };
  EXPECT_EQ(wrapped(128, 4096), 128);
  EXPECT_EQ(wrapped(4, 4096), 16);
  EXPECT_EQ(wrapped(96, 4096), 96);
}

// No sweep ends with groups on thread machines: their reductions are shuffles. On simd machines only what they come to
// passes through scratch.
TEST(Groups, UpTo256ColumnsStayInRegisters) {
  for (int by : {2, 7, 16, 24, 48, 80, 96, 100, 128, 192, 250, 256})
    for (std::int64_t columns : {768, 896, 1000, 3072})
      for (const Target* target : targets()) {
        const Program program = bound(norm_of_groups(by), columns);
        const Machine machine = target->machine(target->default_arch).value();
        Facts facts{.rows = 4096, .columns = columns, .alignment = columns & -columns};
        const Config config = choose_config(program, machine, facts);
        std::optional<Program> made;
        const Program& resolved = resolve_groups(program, columns, made);
        const TermsReach most = machine.simd ? TermsReach::ValuesInScratch : TermsReach::Registers;
        EXPECT_LE(terms_reach(resolved, config), most)
            << by << " of " << columns << " " << target->name << " " << print(config);
      }
}

// Nor do columns j % g: a thread adds up its own, and one number a column of a stripe passes through scratch.
TEST(Groups, WrappedUpTo256StayInRegistersOfThreads) {
  const std::string text = "g(x[i,j]) -> (y[i,j], r[i, j % {0}])\n  r = mean(x * x, j % {0})\n  y = x * r\n";
  const Machine machine{.simd = false, .shared_bytes = 232448, .clusters = true, .processors = 132};
  for (int by : {2, 3, 8, 24, 64, 96, 100, 128, 250, 256})
    for (std::int64_t columns : {96, 200, 768, 1000, 4096, 16384}) {
      const Program program = bound(fmt::format(fmt::runtime(text), by), columns);
      const Facts facts{.rows = 4096, .columns = columns, .alignment = columns & -columns};
      const Config config = choose_config(program, machine, facts);
      std::optional<Program> made;
      const Program& resolved = resolve_groups(program, columns, made);
      EXPECT_EQ(terms_reach(resolved, config), TermsReach::Registers)
          << by << " of " << columns << " " << print(config);
      EXPECT_EQ(lower(program, config).value().rows.launch.terms, 0);
    }
}

// Beside the row's own sum, only a value a group passes through scratch.
TEST(Groups, OfOtherLayoutsLeaveOneValueInScratch) {
  const Machine machine{.simd = false, .shared_bytes = 232448, .clusters = true, .processors = 132};
  for (const char* index : {"j / 3", "j / 96", "j / 250", "j % 3", "j % 64", "j % 96", "j % 250"})
    for (std::int64_t columns : {300, 1000, 4096}) {
      const std::string text =
          fmt::format("g(x[i,j]) -> (y[i,j], r[i])\n  r = sum(x)\n  y = x * r - sum(x * r, {})\n", index);
      const Program program = bound(text, columns);
      const Facts facts{.rows = 4096, .columns = columns, .alignment = columns & -columns};
      const Config config = choose_config(program, machine, facts);
      std::optional<Program> made;
      const Program& resolved = resolve_groups(program, columns, made);
      EXPECT_NE(terms_reach(resolved, config), TermsReach::Scratch)
          << index << " of " << columns << " " << print(config);
      EXPECT_EQ(lower(program, config).value().rows.launch.terms, 0);
    }
}

// docs/design.md has the widths: what neither registers nor shared memory hold.
TEST(Groups, TermsOfLongRowsLieInTheWorkspace) {
  struct Case {
    const char* index;
    bool beside;  // the row's own sum
    std::int64_t fits, begins;
  };
  const Machine machine = find_target("ptx").value()->machine("sm_90").value();
  for (const Case& each :
       {Case{"j % 3", false, 24576, 32768}, Case{"j % 7", false, 24576, 32768}, Case{"j % 96", false, 49152, 65536},
        Case{"j % 250", false, 49152, 65536}, Case{"j % 64", false, 65536, 98304}, Case{"j / 3", true, 32768, 40960},
        Case{"j / 96", true, 65536, 98304}, Case{"j % 3", true, 65536, 98304}, Case{"j % 64", true, 65536, 98304},
        Case{"j / 3", false, 131072, 0}, Case{"j / 96", false, 131072, 0}, Case{"j / 128", true, 131072, 0}})
    for (const std::int64_t columns : {each.fits, each.begins}) {
      if (!columns) continue;
      const std::string text = each.beside ? "g(x[i,j]) -> (y[i,j], r[i])\n  r = sum(x)\n  y = x * r - sum(x * r, {})\n"
                                           : "g(x[i,j]) -> (y[i,j])\n  y = x / sum(x, {})\n";
      const Program program = bound(fmt::format(fmt::runtime(text), each.index), columns);
      const Lowered lowered =
          lower_for(program, machine, {.rows = 4096, .columns = columns, .alignment = columns & -columns}).value();
      EXPECT_EQ(lowered.kernels.rows.launch.terms > 0, columns == each.begins)
          << each.index << " of " << columns << (each.beside ? " beside a sum " : " ") << print(lowered.config);
    }
}

// On simd machines: one value of every group, a register of them where neighbours fill one.
TEST(Groups, LeaveNoTermsInScratchOfSimdMachines) {
  for (const char* row : {"0", "mean(x)", "sum(x, j / 96)"})
    for (const char* index : {"j / 3", "j / 96", "j / 256", "j % 3", "j % 64", "j % 96", "j % 256"})
      for (std::int64_t columns : {300, 1000, 4096})
        for (const Target* target : targets()) {
          const Machine machine = target->machine(target->default_arch).value();
          if (!machine.simd) continue;
          const std::string text =
              fmt::format("g(x[i,j]) -> (y[i,j])\n  r = {}\n  y = x - sum(x - r, {})\n", row, index);
          const Program program = bound(text, columns);
          const Facts facts{.rows = 4096, .columns = columns, .alignment = columns & -columns};
          const Config config = choose_config(program, machine, facts);
          std::optional<Program> made;
          EXPECT_NE(terms_reach(resolve_groups(program, columns, made), config), TermsReach::Scratch)
              << row << " " << index << " of " << columns << " " << target->name << " " << print(config);
          const std::int64_t bytes = lower(program, config).value().rows.scratch_bytes;
          if (columns == 4096 && std::string(index) != "j / 3") {
            EXPECT_LE(bytes, 4096 * 4) << row << " " << index << " " << target->name;
          }
        }
}

TEST(Groups, OfAShortRowAreShufflesOnAllMachines) {
  const std::string text = "g(x[i,j]) -> (y[i,j])\n  a = x / sum(x, j / 4)\n  y = a / sum(a, j % 4)\n";
  for (const Target* target : targets()) {
    const Machine machine = target->machine(target->default_arch).value();
    const Program program = bound(text, 16);
    const Config config = choose_config(program, machine, {.rows = 4096, .columns = 16, .alignment = 16});
    std::optional<Program> made;
    EXPECT_EQ(terms_reach(resolve_groups(program, 16, made), config), TermsReach::Registers) << target->name;
    EXPECT_EQ(lower(program, config).value().rows.scratch_bytes, 0) << target->name;
  }
}

// Results of each row's own that take a column sum have the kernels of groups, not terms in scratch.
TEST(Groups, SummedIntoEntriesOfTheirRowAreGroups) {
  struct Case {
    const char *index, *sums, *groups;
  };
  for (const Case& each : {Case{"j / 32", "colsum(x * x)", "sum(x * x, j / 32)"},
                           {"j / 96", "colsum(x * x)", "sum(x * x, j / 96)"},
                           {"j % 64", "colsum(x * x)", "sum(x * x, j % 64)"},
                           {"j % 5000", "colsum(x * x)", "sum(x * x, j % 5000)"},  // some entries have no columns
                           {"j / 5000", "colsum(x * x)", "sum(x * x, j / 5000)"},
                           {"j / 32", "colmax(abs(x))", "amax(abs(x), j / 32)"}})
    for (const Target* target : targets()) {
      auto kernels = [&](const char* value) {
        const Program program = bound(fmt::format("g(x[i,j]) -> (r[i, {}])\n  r = {}\n", each.index, value), 4096);
        return print(lower_for(program, target->machine(target->default_arch).value(),
                               {.rows = 4096, .columns = 4096, .alignment = 4096})
                         .value());
      };
      EXPECT_EQ(kernels(each.sums), kernels(each.groups)) << each.index << " " << target->name;
    }
}

// Where a group's value would be another: no column stands on an entry of a maximum, or two divisors say which do.
TEST(Groups, OtherColumnReductionsStay) {
  for (const char* line :
       {"g(x[i,j]) -> (r[i, j % 32])\n  r = colmax(x)\n", "g(x[i,j]) -> (r[i, (j / 2) % 32])\n  r = colsum(x)\n",
        "g(x[i,j]) -> (r[i / 2, j / 32])\n  r = colsum(x)\n"}) {
    const Program program = bound(line, 4096);
    EXPECT_TRUE(is_column_reduction(program[program.results[0].value].op)) << line;
  }
}

}  // namespace
}  // namespace trireme
