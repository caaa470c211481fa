// The operators that come with Trireme: every ops/*.row, embedded by the build in order of their names.
#pragma once
#include <span>
#include <string_view>

namespace trireme {

struct OperatorText {
  std::string_view name;
  std::string_view text;
};

std::span<const OperatorText> operator_texts();

}  // namespace trireme
