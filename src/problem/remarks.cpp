#include "problem/remarks.hpp"

#include <optional>

#include "support/parse_number.hpp"
#include "support/text.hpp"

namespace trireme {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  std::size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<RangeBound> parse_bound(std::string_view text) {
  RangeBound bound;
  if (text.starts_with('n')) {
    bound.columns = true;
    text.remove_prefix(1);
    if (text.empty()) return bound;
    if (text[0] != '+' && text[0] != '-') return std::nullopt;
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  auto [end, error] = parse_f64(text, bound.plus);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return bound;
}

Status read_range(std::string_view text, Remarks& remarks) {
  std::string_view rest = text;
  std::string name(next_word(rest));
  std::string_view bounds = next_word(rest), kind = next_word(rest);
  std::size_t dots = bounds.find("..");
  if (dots != bounds.npos && rest.empty() && (kind.empty() || kind == "integer")) {
    std::optional<RangeBound> low = parse_bound(bounds.substr(0, dots)), high = parse_bound(bounds.substr(dots + 2));
    if (low && high) {
      remarks.ranges[name] = {*low, *high, kind == "integer"};
      return Done{};
    }
  }
  return Error{Code::InvalidProgram,
               "'#: range " + std::string(text) + "': expected '#: range OPERAND LOW..HIGH', perhaps with 'integer'"};
}

}  // namespace

Result<Remarks> parse_remarks(std::string_view program_text) {
  constexpr std::string_view mark = "#:";
  Remarks remarks;
  while (!program_text.empty()) {
    std::string_view line = program_text.substr(0, program_text.find('\n'));
    program_text.remove_prefix(std::min(line.size() + 1, program_text.size()));
    for (std::size_t at = line.find(mark); at != line.npos; at = line.find(mark)) {
      line.remove_prefix(at + mark.size());
      std::string_view rest = trimmed(line.substr(0, line.find(mark)));
      std::string_view verb = next_word(rest);
      if (verb == "try") {
        remarks.tries.emplace_back(trimmed(rest));
      } else if (verb == "range") {
        TRIREME_CHECK(read_range(trimmed(rest), remarks));
      } else if (verb == "returns") {
        while (!rest.empty()) remarks.returns.emplace_back(next_word(rest));
      } else if (verb == "use") {
        remarks.use = next_word(rest);
      } else {
        return Error{Code::InvalidProgram,
                     "'#: " + std::string(verb) + "': expected '#: try', '#: range', '#: use' or '#: returns'"};
      }
    }
  }
  return remarks;
}

}  // namespace trireme
