// The tables of tuned schedules: every line can be read, is of the class that its problem has today, fits it, and is
// what a plan takes.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "schedule/tuned.hpp"
#include "schedule/valid.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

TEST(TunedTables, EveryLineIsTaken) {
  for (const TunedTable& table : tuned_tables()) {
    const Machine machine = find_target("ptx").value()->machine(table.machine).value();
    int lines = 0;
    for (std::string_view text = table.text; !text.empty();) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.empty() || line[0] == '#') continue;
      ++lines;
      const Result<TunedLine> read = parse_tuned_line(line);
      ASSERT_TRUE(read) << read.error().message;
      const std::size_t comment = line.find("  # ");
      ASSERT_NE(comment, line.npos) << "what it was measured on is missing: " << line;
      const Result<Problem> problem = parse_problem(std::string(line.substr(comment + 4)));
      ASSERT_TRUE(problem) << line << ": " << problem.error().message;
      const Result<Prepared> prepared = prepare_problem(*problem, {}, Fill::NoMemory);
      ASSERT_TRUE(prepared) << line << ": " << prepared.error().message;
      const Facts facts = facts_of(prepared->program, prepared->view());
      EXPECT_EQ(problem_class(prepared->program, machine, facts), read->problem_class) << line;
      EXPECT_EQ(read->config.columns, facts.columns) << line;
      const std::optional<Config> taken = tuned_config(prepared->program, machine, facts);
      if (read->model) {
        EXPECT_FALSE(taken) << line;
        continue;
      }
      EXPECT_GT(read->of_chosen, 1) << line;
      const Status status = valid(prepared->program, read->config, machine, facts);
      EXPECT_TRUE(status) << line << ": " << status.error().message;
      if (facts.rows >= 16 * machine.processors) EXPECT_EQ(taken ? print(*taken) : "none", print(read->config)) << line;
    }
    EXPECT_GT(lines, 100) << table.machine;
  }
}

}  // namespace
}  // namespace trireme
