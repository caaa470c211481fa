#include "language/diagnostic.hpp"

#include <algorithm>
#include <array>

namespace trireme {
namespace {

std::size_t step(std::string_view text) { return std::max<std::size_t>(1, character_bytes(text)); }

std::size_t line_start(std::string_view text, std::size_t offset) {
  std::size_t newline = text.substr(0, offset).rfind('\n');
  return newline == std::string_view::npos ? 0 : newline + 1;
}

// A terminal shows each of these as one column: what does not print becomes '?', a tab becomes a blank.
std::string printable(std::string_view character) {
  unsigned char first = static_cast<unsigned char>(character[0]);
  if (first == '\t') return " ";
  if (first < 0x20 || first == 0x7F || character_bytes(character) == 0) return "?";
  return std::string(character);
}

}  // namespace

std::size_t character_bytes(std::string_view text) {
  if (text.empty()) return 0;
  auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  std::size_t length = byte(0) < 0x80    ? 1
                       : byte(0) >= 0xF5 ? 0
                       : byte(0) >= 0xF0 ? 4
                       : byte(0) >= 0xE0 ? 3
                       : byte(0) >= 0xC2 ? 2
                                         : 0;
  if (length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xC0) != 0x80) return 0;
  return length;
}

Place place_of(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  std::size_t start = line_start(text, offset);
  Place place{1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + start, '\n')), 1};
  for (std::size_t at = start; at < offset; at += step(text.substr(at))) ++place.column;
  return place;
}

std::string to_string(Place place) { return std::to_string(place.line) + ":" + std::to_string(place.column); }

Error error_at(std::string_view text, std::size_t offset, std::string_view message) {
  offset = std::min(offset, text.size());
  std::size_t start = line_start(text, offset);
  std::string_view line = text.substr(start, text.substr(start).find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);

  // Of a long line a window around the place is shown: a message is read by people.
  constexpr std::size_t before = 60, after = 40;
  std::string shown, caret;
  std::size_t column = place_of(text, offset).column, at = 0, here = 1;
  for (; at < line.size() && here + before < column; ++here) at += step(line.substr(at));
  if (at > 0) shown = "...", caret = "   ";
  for (; at < line.size() && here <= column + after; ++here) {
    std::size_t length = step(line.substr(at));
    shown += printable(line.substr(at, length));
    at += length;
    if (here < column) caret += ' ';
  }
  if (at < line.size()) shown += "...";
  std::string out = to_string(place_of(text, offset)) + ": ";
  out.append(message).append("\n  ").append(shown).append("\n  ").append(caret).append("^");
  return {Code::InvalidProgram, std::move(out)};
}

void Suggestion::consider(std::string_view candidate) {
  constexpr std::size_t longest = 32;
  if (name_.size() > longest || candidate.size() > longest) return;
  // Edit distance, one row of the table at a time.
  std::array<std::size_t, longest + 1> row;
  for (std::size_t k = 0; k <= candidate.size(); ++k) row[k] = k;
  for (std::size_t a = 0; a < name_.size(); ++a) {
    std::size_t diagonal = row[0];
    row[0] = a + 1;
    for (std::size_t b = 0; b < candidate.size(); ++b) {
      std::size_t above = row[b + 1];
      row[b + 1] = std::min({above + 1, row[b] + 1, diagonal + (name_[a] != candidate[b])});
      diagonal = above;
    }
  }
  // More than half of the name must stay. Among equals the first of the alphabet, whatever order they come in.
  std::size_t distance = row[candidate.size()];
  if (2 * distance >= name_.size() || distance > distance_) return;
  if (distance < distance_ || (!best_.empty() && candidate < best_)) best_ = candidate;
  distance_ = distance;
}

std::string Suggestion::text() const { return best_.empty() ? "" : "; did you mean '" + std::string(best_) + "'?"; }

}  // namespace trireme
