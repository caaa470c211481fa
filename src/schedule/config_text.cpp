// A config as text, both ways: "simd lanes=16 unroll=16 streaming".
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "ir/contract.hpp"
#include "schedule/across.hpp"
#include "schedule/config.hpp"
#include "schedule/shape.hpp"
#include "schedule/stages.hpp"
#include "schedule/sum_classes.hpp"

namespace trireme {
namespace {

struct Number {
  std::string_view name;
  int Config::*member;
  int unsaid;  // the value that need not be printed
};
constexpr Number numbers[] = {{"lanes", &Config::lanes, 0},     {"vector", &Config::vector, 1},
                              {"groups", &Config::groups, 1},   {"cluster", &Config::cluster, 1},
                              {"rows", &Config::rows, 1},       {"teams", &Config::teams, 1},
                              {"stripes", &Config::stripes, 0}, {"unroll", &Config::unroll, 16},
                              {"ring", &Config::ring, 0},       {"resident", &Config::resident, 0}};

struct Flag {
  std::string_view name;
  bool Config::*member;
};
constexpr Flag flags[] = {{"reload", &Config::reload},     {"hoist", &Config::hoist},
                          {"stage", &Config::stage},       {"streaming", &Config::streaming},
                          {"prefetch", &Config::prefetch}, {"overlap", &Config::overlap},
                          {"across", &Config::across}};

// Words about the problem's arrays, which are no choice: printed, and let pass.
constexpr std::string_view of_the_problem[] = {"strided", "jumps", "backwards", "in_place"};

Error wrong(std::string message) { return {Code::InvalidArgument, "config: " + std::move(message)}; }

std::string known_words() {
  std::string words = "simd or threads, columns=N";
  for (const Number& each : numbers) words += fmt::format(", {}=N", each.name);
  for (const Flag& each : flags) words += fmt::format(", {}", each.name);
  return words;
}

}  // namespace

std::string print(const Config& config) {
  std::string text = config.simd ? "simd" : "threads";
  for (const Number& each : numbers) {
    if (each.member == &Config::stripes && config.columns) text += fmt::format(" columns={}", config.columns);
    bool unroll = each.member == &Config::unroll;
    if (unroll ? config.simd && !config.stripes : config.*each.member != each.unsaid)
      text += fmt::format(" {}={}", each.name, config.*each.member);
  }
  for (const Flag& each : flags)
    if (config.*each.member) text += fmt::format(" {}", each.name);
  const std::vector<bool>& over = config.layout.over_operands;
  const bool said[] = {config.layout.strided(), config.layout.jumps(), config.layout.backwards(),
                       std::find(over.begin(), over.end(), true) != over.end()};
  for (std::size_t k = 0; k < std::size(said); ++k)
    if (said[k]) text += fmt::format(" {}", of_the_problem[k]);
  return text;
}

Result<Config> parse_config(std::string_view text) {
  Config config;
  bool kind = false;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) break;
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (word == "simd" || word == "threads") {
      config.simd = word == "simd";
      kind = true;
      continue;
    }
    std::string_view name = word.substr(0, word.find('='));
    auto flag = std::find_if(std::begin(flags), std::end(flags), [&](const Flag& each) { return each.name == word; });
    if (flag != std::end(flags)) {
      config.*flag->member = true;
      continue;
    }
    if (std::find(std::begin(of_the_problem), std::end(of_the_problem), word) != std::end(of_the_problem)) continue;
    auto number =
        std::find_if(std::begin(numbers), std::end(numbers), [&](const Number& each) { return each.name == name; });
    std::int64_t value = 0;
    std::string_view digits = word.substr(std::min(name.size() + 1, word.size()));
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    bool read = !digits.empty() && error == std::errc() && end == digits.data() + digits.size() && value >= 0;
    if (!read || (number == std::end(numbers) && name != "columns") || (name != "columns" && value > 1 << 20))
      return wrong(fmt::format("'{}' is none of {}", word, known_words()));
    if (name == "columns") config.columns = value;
    else config.*number->member = static_cast<int>(value);
  }
  if (!kind) return wrong("it begins with simd or threads, as describe() prints it");
  return config;
}

namespace {

Status check_simd(const Program& program, const Config& config, const Machine& machine, const Facts& facts) {
  int lanes = machine.register_bytes / static_cast<int>(bytes(*program.compute));
  if (config.lanes != lanes)
    return wrong(fmt::format("lanes={}; this machine has {} in {}", config.lanes, lanes, name(*program.compute)));
  if (config.vector != 1 || config.groups != 1 || config.teams != 1 || config.cluster != 1 || config.ring != 0 ||
      config.stage)
    return wrong("vector, groups, teams, cluster, ring and stage are for thread machines");
  if (config.across) {
    if (facts.together < config.lanes || !goes_across(program))
      return wrong("across: as many rows as lanes lie side by side in all arrays, and indices are plain");
    if (config.rows < 1 || config.rows > 16 || config.unroll < 2 || config.unroll > 16 ||
        !std::has_single_bit(static_cast<unsigned>(config.unroll)) || config.stripes || config.columns)
      return wrong("across: rows is 1 to 16, unroll 2, 4, 8 or 16, and stripes and columns are open");
    return Done{};
  }
  std::int64_t chunks = contract::stripe / lanes;
  if (!std::has_single_bit(static_cast<unsigned>(config.unroll)) || config.unroll > chunks)
    return wrong(fmt::format("unroll={}; a power of two up to {} goes", config.unroll, chunks));
  if (config.columns != 0 && config.columns != facts.columns)
    return wrong(fmt::format("columns={}; the problem has {}", config.columns, facts.columns));
  if (!config.stripes) return Done{};
  std::int64_t stripes = contract::stripes(facts.columns);
  if (goes_lane_by_lane(program, facts.layout))
    return wrong("stripes: this program goes lane by lane somewhere, and takes loops");
  if (config.columns == 0 || config.stripes != static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(stripes))) ||
      config.stripes > 16)
    return wrong(
        fmt::format("stripes={}; rows of up to 4096 columns may be unrolled, with columns=N and the power of "
                    "two that holds them",
                    config.stripes));
  return Done{};
}

Status check_threads(const Program& program, const Config& config, const Machine& machine, const Facts& facts) {
  auto power = [](std::int64_t value, std::int64_t most) {
    return value >= 1 && value <= most && std::has_single_bit(static_cast<std::uint64_t>(value));
  };
  int widest = shape_of(program, facts.layout).widest_vector(facts);
  if (config.columns != facts.columns)
    return wrong(fmt::format("columns={}; the problem has {}", config.columns, facts.columns));
  if (!power(config.lanes, 32)) return wrong("lanes is a power of two up to 32");
  if (!power(config.vector, widest))
    return wrong(fmt::format("vector={}; a power of two up to {} goes: 16 bytes, and what the arrays' places allow",
                             config.vector, widest));
  if (config.groups < 1 || config.teams < 1 || config.rows < 1 || config.groups * config.teams * config.lanes > 1024)
    return wrong("a block has 1 to 1024 threads: lanes * groups * teams");
  if (config.groups > 1 && config.lanes != 32) return wrong("several groups have 32 lanes each");
  if (config.teams > 1 && config.groups * config.cluster > 1) return wrong("teams share a block, not a row");
  if (config.cluster < 1 || config.cluster > 4096) return wrong("cluster is 1 to 4096");
  if (config.cluster > (machine.clusters ? 16 : 1) && split_into_stages(program, facts.layout.over_operands).reduces())
    return wrong("blocks that share a row's sums are 1 to 16, where the machine has clusters");
  if (config.resident > 32) return wrong("resident is at most 32");
  if (config.stripes) {
    if (!power(config.stripes, 64)) return wrong("stripes is a power of two up to 64");
    if (std::int64_t{config.stripes} * config.groups * config.cluster * contract::stripe < facts.columns)
      return wrong("stripes * groups * cluster * 256 columns do not hold the row");
    if (config.cluster > 1 && !power(config.groups, 32)) return wrong("a cluster's groups are a power of two");
  } else if (config.cluster > 1 || config.teams > 1 || config.ring) {
    return wrong("cluster, teams and ring need stripes");
  }
  if (config.stage && (!config.ring || config.teams > 1 || config.hoist))
    return wrong("stage needs a ring and one team a block, and excludes hoist");
  if (config.ring < 0 || config.ring == 1 || config.ring > 8) return wrong("ring is 0 or 2 to 8");
  return Done{};
}

}  // namespace

Result<Config> config_for(const Program& given, const Machine& machine, const Facts& facts) {
  if (!facts.config) return choose_config(given, machine, facts);
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  Config config = *facts.config;
  if (config.simd != machine.simd)
    return wrong(std::string("this machine takes ") + (machine.simd ? "simd" : "threads") + " configs");
  if ((config.hoist || config.reload) && !config.stripes) return wrong("hoist and reload need stripes");
  TRIREME_CHECK(machine.simd ? check_simd(program, config, machine, facts)
                             : check_threads(program, config, machine, facts));
  config.layout = facts.layout;
  if (!config.across && fixes_columns(program)) config.columns = facts.columns;
  return config;
}

}  // namespace trireme
