// A config as text, both ways: "simd lanes=16 unroll=16 streaming".
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "schedule/config.hpp"

namespace trireme {
namespace {

struct Number {
  std::string_view name;
  int Config::*member;
  int unsaid;  // the value that need not be printed
};
constexpr Number numbers[] = {
    {"lanes", &Config::lanes, 0},       {"vector", &Config::vector, 1},  {"groups", &Config::groups, 1},
    {"cluster", &Config::cluster, 1},   {"rows", &Config::rows, 1},      {"teams", &Config::teams, 1},
    {"stripes", &Config::stripes, 0},   {"unroll", &Config::unroll, 16}, {"ring", &Config::ring, 0},
    {"resident", &Config::resident, 0}, {"tile", &Config::tile, 0}};

struct Flag {
  std::string_view name;
  bool Config::*member;
};
constexpr Flag flags[] = {{"reload", &Config::reload},       {"hoist", &Config::hoist},
                          {"stage", &Config::stage},         {"entries", &Config::entries},
                          {"streaming", &Config::streaming}, {"prefetch", &Config::prefetch},
                          {"overlap", &Config::overlap},     {"across", &Config::across}};

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

}  // namespace trireme
