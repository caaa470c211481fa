// Says where in a text something is wrong: "line:column: message", the line itself, and a caret under the place.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "trireme/result.hpp"

namespace trireme {

// Lines and columns count from 1, columns in characters (not bytes), so that they agree with editors.
struct Place {
  std::size_t line, column;
};
Place place_of(std::string_view text, std::size_t offset);
std::string to_string(Place place);  // "3:14"

// The length of the UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t character_bytes(std::string_view text);

Error error_at(std::string_view text, std::size_t offset, std::string_view message);

// The candidate that `name` was most likely meant to be; empty if none is near.
class Suggestion {
 public:
  explicit Suggestion(std::string_view name) : name_(name) {}
  void consider(std::string_view candidate);
  std::string text() const;  // "; did you mean 'rstd'?" or nothing

 private:
  std::string_view name_, best_;
  std::size_t distance_ = 3;  // three edits away is another word
};

}  // namespace trireme
