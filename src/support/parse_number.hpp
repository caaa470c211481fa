// std::from_chars for f64, also where the standard library lacks it (libc++ before 20, which builds for WebAssembly
// have): the longest number that `text` begins with, without a leading '+' or blanks; hexadecimal ones have no "0x".
#pragma once
#include <charconv>
#include <string_view>

namespace trireme {

// By strtod. The same results and ends, where the locale is "C".
std::from_chars_result parse_f64_by_strtod(std::string_view text, double& value, bool hexadecimal = false);

inline std::from_chars_result parse_f64(std::string_view text, double& value, bool hexadecimal = false) {
#if defined(__cpp_lib_to_chars)
  return std::from_chars(text.data(), text.data() + text.size(), value,
                         hexadecimal ? std::chars_format::hex : std::chars_format::general);
#else
  return parse_f64_by_strtod(text, value, hexadecimal);
#endif
}

}  // namespace trireme
