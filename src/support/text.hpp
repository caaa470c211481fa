// Words of a text.
#pragma once
#include <algorithm>
#include <string_view>

namespace trireme {

// Takes the first word, and the blanks before it, from `rest`; empty at its end.
inline std::string_view next_word(std::string_view& rest) {
  constexpr std::string_view blanks = " \t\r\n";
  rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(blanks));
  rest.remove_prefix(word.size());
  return word;
}

}  // namespace trireme
