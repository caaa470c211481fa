// A config as text, both ways: "simd lanes=16 unroll=16 streaming".
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "schedule/config.hpp"
#include "schedule/options.hpp"

namespace trireme {
namespace {

// Words about the problem's arrays, which are no choice: printed, and let pass.
constexpr std::string_view of_the_problem[] = {"strided", "jumps", "backwards", "in_place"};

Error wrong(std::string message) { return {Code::InvalidArgument, "config: " + std::move(message)}; }

std::string known_words() {
  std::string words = "simd or threads, columns=N";
  for (const Option& each : schedule_options) words += fmt::format(", {}{}", each.name, each.flag ? "" : "=N");
  return words;
}

}  // namespace

std::string print(const Config& config) {
  std::string text = config.simd ? "simd" : "threads";
  for (const Option& each : schedule_options) {
    if (each.number == &Config::stripes && config.columns) text += fmt::format(" columns={}", config.columns);
    if (!each.said(config) && !(each.always && each.kinds & kind_of(config))) continue;
    text += fmt::format(" {}", each.name);
    if (each.number) text += fmt::format("={}", config.*each.number);
  }
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
  std::array<bool, std::size(schedule_options)> is_said = {};
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) break;
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (word == "simd" || word == "threads") {
      if (kind) return wrong(fmt::format("'{}': simd or threads stands there once", word));
      config.simd = word == "simd";
      kind = true;
      continue;
    }
    std::string_view name = word.substr(0, word.find('='));
    const auto* option = std::find_if(std::begin(schedule_options), std::end(schedule_options),
                                      [&](const Option& each) { return each.name == name; });
    const bool known = option != std::end(schedule_options);
    if (known && std::exchange(is_said[static_cast<std::size_t>(option - schedule_options)], true))
      return wrong(fmt::format("{} stands there twice", name));
    if (known && option->flag && name == word) {
      config.*option->flag = true;
      continue;
    }
    if (std::find(std::begin(of_the_problem), std::end(of_the_problem), word) != std::end(of_the_problem)) continue;
    std::int64_t value = 0;
    std::string_view digits = word.substr(std::min(name.size() + 1, word.size()));
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    bool read = !digits.empty() && error == std::errc() && end == digits.data() + digits.size() && value >= 0;
    const bool columns = name == "columns";
    if (!read || !(columns || (known && option->number)) || (!columns && value > 1 << 20))
      return wrong(fmt::format("'{}' is none of {}", word, known_words()));
    if (columns) config.columns = value;
    else config.*option->number = static_cast<int>(value);
  }
  if (!kind) return wrong("it begins with simd or threads, as describe() prints it");
  return config;
}

}  // namespace trireme
