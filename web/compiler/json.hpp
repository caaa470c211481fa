// Just enough to answer in JSON: members and elements are appended in order.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

namespace trireme::web {

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else out += c;
  }
  return out + '"';
}

// JSON has no infinities; JavaScript's Number() reads these words.
inline std::string number(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return fmt::format("{}", value);
}

class Object {
 public:
  Object& raw(std::string_view name, std::string_view json) {
    text_ += fmt::format("{}{}:{}", text_.empty() ? "" : ",", quoted(name), json);
    return *this;
  }
  Object& text(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
  Object& number(std::string_view name, double value) { return raw(name, web::number(value)); }
  Object& whole(std::string_view name, std::int64_t value) { return raw(name, fmt::to_string(value)); }
  Object& flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  std::string done() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

template <typename List, typename Each>
std::string array(const List& list, Each&& each) {
  std::string text;
  for (const auto& element : list) text += (text.empty() ? "" : ",") + std::string(each(element));
  return "[" + text + "]";
}

}  // namespace trireme::web
