// Schedules that were found by measurement: tables of text, one for each machine that was measured, written by
// `trireme tune --table` and embedded from tuned/. A line is
//
//   SHARE OF_CHOSEN  CLASS  SCHEDULE  # PROBLEM
//
// the share of a copy's speed, how many times faster that is than what the cost model would choose, the class of the
// problem, and the schedule. A problem of a class that has a line takes its schedule. One of other columns takes that
// of the nearest ones, dealt out to as many threads as it needs, or unrolled as often. All others are left to the cost
// model, and so are those whose line says `model columns=N`: there a search found nothing that was worth it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "schedule/config.hpp"

namespace trireme {

// What of a table is looked up: a class, its schedules, an empty line, and so on. A line is the numbers of its words,
// from 1, and a 0; a number above 254 has a 255 for each 255 of it before the rest (cmake/embed.cmake writes it).
struct TunedTable {
  std::string_view machine;  // Machine::tuned
  std::string_view words;    // each once, parted by blanks
  std::span<const std::uint8_t> lines;
};
std::span<const TunedTable> tuned_tables();  // embedded

// What of a problem its line is found by: what is read, stored and summed, and how much arithmetic there is.
std::string problem_class(const Program& program, const Machine& machine, const Facts& facts);

// Tables are made from large batches of arrays without gaps: others have schedules of their own.
bool is_as_in_tables(const Program& program, const Machine& machine, const Facts& facts);

// The same schedule for other columns: as many elements a thread, more or fewer threads.
Config with_columns(Config config, std::int64_t columns);

// By the machine's own table, if it has one.
std::optional<Config> tuned_config(const Program& program, const Machine& machine, const Facts& facts);
std::optional<Config> tuned_config(const TunedTable& table, const Program& program, const Machine& machine,
                                   const Facts& facts);

struct TunedLine {
  double share = 0, of_chosen = 0;
  std::string problem_class;
  bool model = false;  // the cost model's choice is as good as any
  Config config;       // of that, only the columns
  std::string problem = {};
};
Result<TunedLine> parse_tuned_line(std::string_view line);
std::string print(const TunedLine& line);

// A whole table, in the order in which it is written.
using TunedLines = std::map<std::string, TunedLine>;
Result<TunedLines> read_tuned(const std::string& text);
std::string print_tuned(const TunedLines& lines, std::string_view where);  // where: what it was measured on

// Adds what was measured, unless a faster schedule is known. What is not worth it is left to the model.
void add_tuned(TunedLines& lines, TunedLine line);

}  // namespace trireme
