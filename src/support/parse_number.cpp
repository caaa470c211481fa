#include "support/parse_number.hpp"

#include <cmath>
#include <cstdlib>
#include <string>

namespace trireme {
namespace {

// Follows the grammar of a number; strtod would take more: blanks, '+', "0x", words in parentheses.
struct Scan {
  std::string_view text;
  bool hexadecimal;
  std::size_t at = 0;
  bool has_digits = false, is_zero = true;

  char here() const { return at < text.size() ? text[at] : '\0'; }
  bool is_digit() const {
    const char c = here();
    return (c >= '0' && c <= '9') || (hexadecimal && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
  }
  bool word(std::string_view lower) {
    if (text.size() - at < lower.size()) return false;
    for (std::size_t k = 0; k < lower.size(); ++k)
      if ((text[at + k] | 0x20) != lower[k]) return false;
    at += lower.size();
    return true;
  }
  void digits() {
    for (; is_digit(); ++at) {
      has_digits = true;
      is_zero = is_zero && here() == '0';
    }
  }
  void mantissa() {
    digits();
    if (here() != '.') return;
    ++at;
    digits();
    if (!has_digits) --at;
  }
  void exponent() {  // an 'e' that no digits follow is not its
    const std::size_t begin = at;
    if ((here() | 0x20) != (hexadecimal ? 'p' : 'e')) return;
    ++at;
    if (here() == '+' || here() == '-') ++at;
    const std::size_t first = at;
    while (here() >= '0' && here() <= '9') ++at;
    if (at == first) at = begin;
  }
};

}  // namespace

std::from_chars_result parse_f64_by_strtod(std::string_view text, double& value, bool hexadecimal) {
  Scan scan{text, hexadecimal};
  const bool negative = scan.here() == '-';
  if (negative) ++scan.at;
  const std::size_t first = scan.at;
  auto end = [&] { return text.data() + scan.at; };
  auto finish = [&](double magnitude) -> std::from_chars_result {
    value = negative ? -magnitude : magnitude;
    return {end(), std::errc()};
  };
  if (scan.word("inf")) {
    scan.word("inity");
    return finish(INFINITY);
  }
  if (scan.word("nan")) return finish(NAN);
  scan.mantissa();
  if (!scan.has_digits) return {text.data(), std::errc::invalid_argument};
  scan.exponent();
  const std::string digits = (hexadecimal ? "0x" : "") + std::string(text.substr(first, scan.at - first));
  const double magnitude = std::strtod(digits.c_str(), nullptr);
  if (std::isinf(magnitude) || (magnitude == 0 && !scan.is_zero)) return {end(), std::errc::result_out_of_range};
  return finish(magnitude);
}

}  // namespace trireme
