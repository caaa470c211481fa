#include "schedule/tuned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ir/contract.hpp"
#include "schedule/options.hpp"
#include "schedule/shape.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/valid.hpp"
#include "schedule/work.hpp"
#include "support/parse_number.hpp"

namespace trireme {
namespace {

// Arithmetic to steps of a fifth: programs of about as much take the same schedules.
int work_class(int instructions) { return static_cast<int>(std::lround(std::log2(instructions) * 4)); }

// Runs differ by some percent by themselves: a schedule must be faster than the chosen one, or a known one, by more.
constexpr double worth = 1.02;

std::string key_of(const TunedLine& line) { return fmt::format("{} {:>8}", line.problem_class, line.config.columns); }

template <typename Use>
void each_line(std::string_view text, Use&& use) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.empty() && line[0] != '#') use(line);
  }
}

// The schedules of a class in an embedded table, as their text was.
template <typename Use>
void each_schedule(const TunedTable& table, std::string_view of_class, Use&& use) {
  std::vector<std::string_view> words = {""};
  for (std::size_t at = 0; at < table.words.size(); at += words.back().size() + 1)
    words.push_back(table.words.substr(at, table.words.find(' ', at) - at));
  std::string line;
  std::size_t number = 0, count = 0;
  bool is_class = false, is_read = false;
  for (const std::uint8_t part : table.lines) {
    number += part;
    if (part == 255) continue;
    if (const std::size_t word = std::exchange(number, 0)) {
      if (is_read) line.append(line.empty() ? "" : " ").append(words[word]);
      ++count;
      continue;
    }
    if (!count) is_class = is_read = true;
    else if (std::exchange(is_class, false)) is_read = line == of_class;
    else if (is_read) use(std::string_view(line));
    line.clear(), count = 0;
  }
}

Status parse_schedule(std::string_view text, TunedLine& line) {
  constexpr std::string_view model = "model ";
  line.model = text.starts_with(model);
  if (line.model) text.remove_prefix(model.size());
  TRIREME_TRY(config, parse_config((line.model ? "threads " : "") + std::string(text)));
  line.config = config;
  return Done{};
}

}  // namespace

std::string problem_class(const Program& program, const Machine& machine, const Facts& facts) {
  const Shape shape = shape_of(program, facts.layout);
  std::string text;
  auto say = [&](std::string_view name, std::int64_t value) {
    if (value) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  };
  say("read", shape.row_bytes);
  say("stored", shape.stored_bytes);
  say("weights", shape.column_bytes);
  say("widest", shape.widest);
  say("sweeps", shape.reductions);
  say("row_sums", shape.row_sums);
  say("column_sums", shape.column_sums);
  if (const std::int64_t rows = entry_sums(program, facts.columns).rows) say("entry_rows", next_power(rows));
  say("odd", shape.odd_columns);
  say("rotated", shape.rotations);
  say("work", work_class(instructions_a_vector(program, machine.instructions)));
  return text;
}

bool is_as_in_tables(const Program& program, const Machine& machine, const Facts& facts) {
  if (facts.layout.strided() || facts.layout.jumps()) return false;
  if (!machine.simd) return facts.rows >= many_rows(machine);
  const Shape shape = shape_of(program, facts.layout);
  const std::int64_t moved = facts.rows * facts.columns * (shape.row_bytes + shape.stored_bytes);
  return moved > 4 * machine.cache_bytes && !facts.in_place && !facts.rows_apart && !facts.layout.backwards() &&
         facts.result_alignment >= machine.register_bytes;
}

Config with_columns(Config config, std::int64_t columns) {
  auto up = [](std::int64_t a, std::int64_t b) { return static_cast<int>((a + b - 1) / b); };
  const std::int64_t stripes = contract::stripes(columns);
  if (std::exchange(config.columns, columns) == columns || !config.stripes) return config;
  if (config.simd) config.stripes = static_cast<int>(next_power(stripes));
  if (config.simd || stripes == 1) return config;
  if (config.cluster == 1) config.groups = up(stripes, config.stripes);
  else config.cluster = up(stripes, std::int64_t{config.stripes} * config.groups);
  if (config.groups * config.cluster > 1) config.teams = 1;
  return config;
}

std::optional<Config> tuned_config(const Program& program, const Machine& machine, const Facts& facts) {
  const std::span<const TunedTable> tables = tuned_tables();
  const auto table =
      std::find_if(tables.begin(), tables.end(), [&](const TunedTable& each) { return each.machine == machine.tuned; });
  return table == tables.end() ? std::nullopt : tuned_config(*table, program, machine, facts);
}

std::optional<Config> tuned_config(const TunedTable& table, const Program& program, const Machine& machine,
                                   const Facts& facts) {
  if (!is_as_in_tables(program, machine, facts)) return std::nullopt;
  // The nearest columns, by their quotient, up to a half more or less.
  std::optional<TunedLine> nearest;
  double least = std::log2(1.5);
  each_schedule(table, problem_class(program, machine, facts), [&](std::string_view text) {
    TunedLine line;
    if (!parse_schedule(text, line)) return;
    if ((line.config.columns <= contract::stripe) != (facts.columns <= contract::stripe)) return;
    const double apart =
        std::fabs(std::log2(static_cast<double>(line.config.columns) / static_cast<double>(facts.columns)));
    if (apart < least) least = apart, nearest = line;
  });
  if (!nearest || nearest->model) return std::nullopt;
  Config config = with_columns(nearest->config, facts.columns);
  // Loops of simd machines have any number of columns: lines say which one they were timed at.
  if (kind_of(config) == simd_loops && !fixes_columns(program)) config.columns = 0;
  return valid(program, config, machine, facts) ? std::optional(config) : std::nullopt;
}

Result<TunedLine> parse_tuned_line(std::string_view line) {
  auto wrong = [&] { return Error{Code::InvalidArgument, fmt::format("not a line of a tuned table: '{}'", line)}; };
  TunedLine parsed;
  const std::size_t comment = line.find("  # ");
  if (comment == line.npos) return wrong();
  parsed.problem = line.substr(comment + 4);
  std::string_view rest = line.substr(0, comment);
  auto number = [&](double& value) {
    auto [end, error] = parse_f64(rest, value);
    if (error != std::errc()) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return true;
  };
  if (!number(parsed.share) || !number(parsed.of_chosen)) return wrong();
  const std::size_t end = rest.find("  ");
  if (end == rest.npos) return wrong();
  parsed.problem_class = rest.substr(0, end);
  TRIREME_CHECK(parse_schedule(rest.substr(end + 2), parsed));
  return parsed;
}

std::string print(const TunedLine& line) {
  return fmt::format("{:.3f} {:.2f}  {}  {}  # {}", line.share, line.of_chosen, line.problem_class,
                     line.model ? fmt::format("model columns={}", line.config.columns) : print(line.config),
                     line.problem);
}

Result<TunedLines> read_tuned(const std::string& text) {
  TunedLines lines;
  Status status = Done{};
  each_line(text, [&](std::string_view line) {
    if (Result<TunedLine> read = parse_tuned_line(line)) lines[key_of(*read)] = *read;
    else if (status) status = read.error();
  });
  if (!status) return status.error();
  return lines;
}

std::string print_tuned(const TunedLines& lines, std::string_view where) {
  std::string text = fmt::format(
      "# Share of a copy, times faster than the cost model's choice, class, schedule, problem. Measured on {}.\n",
      where);
  for (const auto& [key, line] : lines) text += print(line) + "\n";
  return text;
}

void add_tuned(TunedLines& lines, TunedLine line) {
  line.model = line.of_chosen <= worth;
  if (line.model) line.share /= line.of_chosen, line.of_chosen = 1;
  const auto [known, added] = lines.try_emplace(key_of(line), line);
  if (!added && line.share > known->second.share * worth) known->second = std::move(line);
}

}  // namespace trireme
