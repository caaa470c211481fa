#include "schedule/tuned.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "ir/contract.hpp"
#include "schedule/shape.hpp"
#include "schedule/valid.hpp"
#include "schedule/work.hpp"

namespace trireme {
namespace {

// Arithmetic to steps of a fifth: programs of about as much take the same schedules.
int work_class(int instructions) { return static_cast<int>(std::lround(std::log2(instructions) * 4)); }

using Table = std::map<std::string, std::map<std::int64_t, TunedLine>, std::less<>>;  // by class and columns

Table read(std::string_view text) {
  Table table;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    if (Result<TunedLine> parsed = parse_tuned_line(line))
      table[parsed->problem_class].emplace(parsed->config.columns, *parsed);
  }
  return table;
}

const Table* table_of(std::string_view machine) {
  static const std::map<std::string_view, Table> tables = [] {
    std::map<std::string_view, Table> all;
    for (const TunedTable& each : tuned_tables()) all.emplace(each.machine, read(each.text));
    return all;
  }();
  const auto found = tables.find(machine);
  return found == tables.end() ? nullptr : &found->second;
}

}  // namespace

std::string problem_class(const Program& program, const Machine& machine, const Facts& facts) {
  const Shape shape = shape_of(program, facts.layout);
  return fmt::format(
      "read={} stored={} weights={} widest={} sweeps={} row_sums={} column_sums={} odd={} rotated={} work={}",
      shape.row_bytes, shape.stored_bytes, shape.column_bytes, shape.widest, shape.reductions, shape.row_sums,
      shape.column_sums, shape.odd_columns, shape.rotations,
      work_class(instructions_a_vector(program, machine.instructions)));
}

Config with_columns(Config config, std::int64_t columns) {
  auto up = [](std::int64_t a, std::int64_t b) { return static_cast<int>((a + b - 1) / b); };
  const std::int64_t stripes = contract::stripes(columns);
  if (std::exchange(config.columns, columns) == columns || !config.stripes || stripes == 1) return config;
  if (config.cluster == 1) config.groups = up(stripes, config.stripes);
  else config.cluster = up(stripes, std::int64_t{config.stripes} * config.groups);
  if (config.groups * config.cluster > 1) config.teams = 1;
  return config;
}

// Tables are made from large batches of arrays without gaps: others have schedules of their own.
std::optional<Config> tuned_config(const Program& program, const Machine& machine, const Facts& facts) {
  const Table* table = table_of(machine.tuned);
  if (!table || facts.rows < 16 * machine.processors || facts.layout.strided() || facts.layout.jumps())
    return std::nullopt;
  const auto found = table->find(problem_class(program, machine, facts));
  if (found == table->end()) return std::nullopt;
  const auto& by_columns = found->second;
  // The nearest, by their quotient, up to a half more or less.
  const TunedLine* nearest = nullptr;
  double least = std::log2(1.5);
  for (const auto& [columns, line] : by_columns)
    if (const double apart = std::fabs(std::log2(static_cast<double>(columns) / static_cast<double>(facts.columns)));
        apart < least && (columns <= contract::stripe) == (facts.columns <= contract::stripe))
      least = apart, nearest = &line;
  if (!nearest || nearest->model) return std::nullopt;
  const Config config = with_columns(nearest->config, facts.columns);
  return valid(program, config, machine, facts) ? std::optional(config) : std::nullopt;
}

Result<TunedLine> parse_tuned_line(std::string_view line) {
  auto wrong = [&] { return Error{Code::InvalidArgument, fmt::format("not a line of a tuned table: '{}'", line)}; };
  TunedLine parsed;
  std::string_view rest = line.substr(0, line.find("  #"));
  auto number = [&](double& value) {
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return true;
  };
  if (!number(parsed.share) || !number(parsed.of_chosen)) return wrong();
  const std::size_t end = rest.find("  ");
  if (end == rest.npos) return wrong();
  parsed.problem_class = rest.substr(0, end);
  std::string_view schedule = rest.substr(end + 2);
  constexpr std::string_view model = "model ";
  parsed.model = schedule.starts_with(model);
  if (parsed.model) schedule.remove_prefix(model.size());
  TRIREME_TRY(config, parse_config((parsed.model ? "threads " : "") + std::string(schedule)));
  parsed.config = config;
  return parsed;
}

std::string print(const TunedLine& line) {
  return fmt::format("{:.3f} {:.2f}  {}  {}", line.share, line.of_chosen, line.problem_class,
                     line.model ? fmt::format("model columns={}", line.config.columns) : print(line.config));
}

}  // namespace trireme
