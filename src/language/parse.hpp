// Text to program. Errors carry line, column, what was expected, and a caret under the place.
#pragma once
#include <string_view>

#include "ir/program.hpp"

namespace trireme {

inline constexpr std::size_t max_text_bytes = 1 << 20;
inline constexpr int max_depth = 256;
inline constexpr std::size_t max_nodes = 65536;

Result<Program> parse(std::string_view text);

// A program's first line alone: its results have no values yet, and defaults left as "..." are missing.
Result<Program> parse_signature(std::string_view text);

}  // namespace trireme
