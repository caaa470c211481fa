#include "problem/problem.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "support/parse_number.hpp"
#include "support/text.hpp"
#include "support/type_names.hpp"

namespace trireme {
namespace {

// Reads the whole of `text` as a number of type T, or nothing.
template <typename T>
std::optional<T> whole(std::string_view text) {
  T value{};
  const auto [end, error] = [&] {
    if constexpr (std::is_same_v<T, double>) return parse_f64(text, value);
    else return std::from_chars(text.data(), text.data() + text.size(), value);
  }();
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_name(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return !text.empty() && letter(text[0]);
}

class Reader {
 public:
  explicit Reader(std::string_view line) : line_(line), rest_(line) {}

  Result<Problem> read() {
    problem_.program = next_word(rest_);
    if (problem_.program.empty() || problem_.program.find('=') != std::string::npos)
      return wrong("a problem starts with the name of an operator");
    TRIREME_CHECK(read_shape(next_word(rest_)));
    for (std::string_view word = next_word(rest_); !word.empty(); word = next_word(rest_))
      TRIREME_CHECK(read_word(word));
    if (problem_.axes > static_cast<int>(problem_.shape.size()))
      return wrong("axes=" + std::to_string(problem_.axes) + " of a shape with " +
                   std::to_string(problem_.shape.size()) + " axes");
    if (!problem_.gradients.empty() && !problem_.backward) return wrong("gradients arrive in a backward");
    if (problem_.columns() < 1) return wrong("a row has at least one column");
    return std::move(problem_);
  }

 private:
  Error wrong(const std::string& what) const {
    return {Code::InvalidArgument, "problem line '" + std::string(line_) + "': " + what};
  }

  Status read_shape(std::string_view word) {
    std::string expected = "expected a shape such as 33x4097, not '" + std::string(word) + "'";
    // Beyond 2^62 elements no index is safe, whatever the type.
    std::int64_t left = std::int64_t{1} << 62;
    while (true) {
      std::size_t cross = word.find('x');
      std::optional<std::int64_t> extent = whole<std::int64_t>(word.substr(0, cross));
      if (!extent || *extent < 0) return wrong(expected);
      if (*extent > left) return wrong("the shape has more than 2^62 elements");
      left /= std::max<std::int64_t>(*extent, 1);
      problem_.shape.push_back(*extent);
      if (problem_.shape.size() > max_rank) return wrong("a shape has at most 8 axes");
      if (cross == word.npos) return Done{};
      word.remove_prefix(cross + 1);
    }
  }

  Status read_word(std::string_view word) {
    if (word == "backward") {
      if (problem_.backward) return wrong("'backward' stands twice");
      problem_.backward = true;
      return Done{};
    }
    std::size_t equals = word.find('=');
    if (const std::size_t dot = word.find(".rows=");
        dot != word.npos && dot + 5 == equals && is_name(word.substr(0, dot))) {
      const std::optional<std::int64_t> rows = whole<std::int64_t>(word.substr(equals + 1));
      if (!rows || *rows < 1) return wrong("'" + std::string(word.substr(0, equals)) + "' is a number from 1");
      if (!seen_.insert(std::string(word.substr(0, equals))).second)
        return wrong("'" + std::string(word.substr(0, equals)) + "' stands twice");
      problem_.placements[std::string(word.substr(0, dot))].rows = *rows;
      return Done{};
    }
    if (equals == word.npos || !is_name(word.substr(0, equals)))
      return wrong("expected NAME=TYPE, NAME=none, NAME=NUMBER or backward, not '" + std::string(word) + "'");
    std::string name(word.substr(0, equals));
    std::string_view value = word.substr(equals + 1);
    if (!seen_.insert(name).second) return wrong("'" + name + "' stands twice");
    if (name == "axes") {
      std::optional<int> axes = whole<int>(value);
      if (!axes || *axes < 1) return wrong("axes is a number from 1, not '" + std::string(value) + "'");
      problem_.axes = *axes;
      return Done{};
    }
    if (name == "gradients") {
      for (std::string_view rest = value;;) {
        const std::string_view each = rest.substr(0, rest.find(','));
        if (!is_name(each) || !problem_.gradients.insert(std::string(each)).second)
          return wrong("gradients names results, as gradients=loss,lse, not '" + std::string(value) + "'");
        if (each.size() == rest.size()) return Done{};
        rest.remove_prefix(each.size() + 1);
      }
    }
    if (name == "seed" && !type_named(value.substr(0, value.find_first_of("+:")))) {  // else an operand's type
      std::optional<std::uint32_t> seed = whole<std::uint32_t>(value);
      if (!seed) return wrong("seed is a number below 2^32, not '" + std::string(value) + "'");
      problem_.seed = *seed;
      return Done{};
    }
    if (name == "row_block") {
      std::optional<std::uint32_t> rows = whole<std::uint32_t>(value);
      if (!rows || !*rows) return wrong("row_block is a number of rows, not '" + std::string(value) + "'");
      problem_.row_block = *rows;
      return Done{};
    }
    if (name == "accumulate") {
      while (!value.empty()) {
        const std::string_view each = value.substr(0, value.find(','));
        if (!is_name(each) || !problem_.accumulate.emplace(each).second)
          return wrong("accumulate is a list of results with commas between them, not '" +
                       std::string(word.substr(equals + 1)) + "'");
        value.remove_prefix(std::min(each.size() + 1, value.size()));
      }
      return Done{};
    }
    if (value == "none" || value.starts_with("none:")) {
      problem_.absent.insert(name);
      if (value == "none") return Done{};
      const std::optional<Type> type = type_named(value.substr(5));
      if (!type) return wrong("'" + name + "' is none, or none: and a type (" + type_names(" ", " ") + ")");
      problem_.types[name] = *type;
      return Done{};
    }
    std::size_t place = value.find_first_of("+:");
    if (place == 0) return read_placement(name, value);
    if (std::optional<Type> type = type_named(value.substr(0, place))) {
      problem_.types[name] = *type;
      return place == value.npos ? Status(Done{}) : read_placement(name, value.substr(place));
    }
    if (std::optional<double> number = whole<double>(value)) {
      problem_.constants[name] = *number;
      return Done{};
    }
    return wrong("'" + name + "' is a type (" + type_names(" ", " ") + "), none or a number, not '" +
                 std::string(value) + "'");
  }

  // "+3", ":5000", "+3:5000" or "+3:12288,128"
  Status read_placement(const std::string& name, std::string_view text) {
    Placement placement;
    bool fine = true;
    if (text[0] == '+') {
      std::size_t colon = text.find(':');
      std::optional<std::int64_t> offset = whole<std::int64_t>(text.substr(1, colon == text.npos ? colon : colon - 1));
      fine = offset && *offset >= 0;
      placement.offset = offset.value_or(0);
      text.remove_prefix(std::min(colon, text.size()));
    }
    while (fine && !text.empty()) {
      text.remove_prefix(1);
      std::optional<std::int64_t> stride = whole<std::int64_t>(text.substr(0, text.find(',')));
      fine = stride && placement.strides.size() < max_rank;
      placement.strides.push_back(stride.value_or(0));
      text.remove_prefix(std::min(text.find(','), text.size()));
    }
    if (!fine)
      return wrong("'" + name + "' is placed by +OFFSET, :STRIDES or both, such as bf16+3:5000 or f32:12288,128 (in " +
                   "elements)");
    Placement& known = problem_.placements[name];
    placement.rows = known.rows;
    known = placement;
    if (known == Placement{}) problem_.placements.erase(name);
    return Done{};
  }

  std::string_view line_, rest_;
  std::set<std::string> seen_;
  Problem problem_;
};

std::string shortest(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::int64_t Problem::rows() const {
  std::int64_t product = 1;
  for (std::size_t k = 0; k + axes < shape.size(); ++k) product *= shape[k];
  return product;
}

std::int64_t Problem::columns() const {
  std::int64_t product = 1;
  for (std::size_t k = shape.size() - axes; k < shape.size(); ++k) product *= shape[k];
  return product;
}

Result<Problem> parse_problem(std::string_view line) { return Reader(line).read(); }

std::string print(const Problem& problem) {
  std::string text = problem.program + ' ';
  for (std::size_t k = 0; k < problem.shape.size(); ++k) text += (k ? "x" : "") + std::to_string(problem.shape[k]);
  std::map<std::string, std::string> words;
  for (const auto& [name, type] : problem.types) words[name] = trireme::name(type);
  for (const auto& [name, placement] : problem.placements) {
    if (placement.offset != 0) words[name] += '+' + std::to_string(placement.offset);
    for (std::size_t k = 0; k < placement.strides.size(); ++k)
      words[name] += (k ? ',' : ':') + std::to_string(placement.strides[k]);
  }
  for (auto each = words.begin(); each != words.end();)
    each = each->second.empty() ? words.erase(each) : std::next(each);
  for (const auto& [name, placement] : problem.placements)
    if (placement.rows >= 0) words[name + ".rows"] = std::to_string(placement.rows);
  for (const std::string& name : problem.absent) {
    const auto type = problem.types.find(name);
    words[name] = type == problem.types.end() ? "none" : "none:" + std::string(trireme::name(type->second));
  }
  for (const auto& [name, value] : problem.constants) words[name] = shortest(value);
  for (const auto& [name, word] : words) text += ' ' + name + '=' + word;
  if (problem.backward) text += " backward";
  for (const std::string& name : problem.gradients)
    text += (name == *problem.gradients.begin() ? " gradients=" : ",") + name;
  if (problem.axes != 1) text += " axes=" + std::to_string(problem.axes);
  std::string accumulated;
  for (const std::string& name : problem.accumulate) accumulated += (accumulated.empty() ? " accumulate=" : ",") + name;
  text += accumulated;
  if (problem.row_block) text += " row_block=" + std::to_string(problem.row_block);
  if (problem.seed != 0) text += " seed=" + std::to_string(problem.seed);
  return text;
}

}  // namespace trireme
