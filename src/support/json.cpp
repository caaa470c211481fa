#include "support/json.hpp"

#include <fmt/format.h>

namespace trireme::json {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<Json> whole() {
    if (text_.size() > max_bytes) return wrong("it is longer than 64 MiB");
    TRIREME_TRY(json, value(0));
    blanks();
    if (at_ != text_.size()) return wrong("something stands behind its end");
    return json;
  }

 private:
  Error wrong(const std::string& what) const {
    return {Code::InvalidArgument, fmt::format("JSON, byte {}: {}", at_, what)};
  }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<Json> value(int depth) {
    if (depth > max_depth) return wrong("it is nested too deeply");
    blanks();
    if (take('{')) return object(depth);
    if (take('[')) return list(depth);
    if (at_ < text_.size() && text_[at_] == '"') {
      TRIREME_TRY(made, string());
      return Json{std::move(made)};
    }
    return number();
  }

  Result<Json> object(int depth) {
    Object made;
    if (take('}')) return Json{std::move(made)};
    do {
      blanks();
      TRIREME_TRY(name, string());
      if (!take(':')) return wrong("expected ':'");
      TRIREME_TRY(each, value(depth + 1));
      if (!made.emplace(name, std::move(each)).second) return wrong("'" + name + "' stands twice");
    } while (take(','));
    if (!take('}')) return wrong("expected ',' or '}'");
    return Json{std::move(made)};
  }

  Result<Json> list(int depth) {
    List made;
    if (take(']')) return Json{std::move(made)};
    do {
      TRIREME_TRY(each, value(depth + 1));
      made.push_back(std::move(each));
    } while (take(','));
    if (!take(']')) return wrong("expected ',' or ']'");
    return Json{std::move(made)};
  }

  Result<Json> number() {
    const bool negative = at_ < text_.size() && text_[at_] == '-';
    if (negative) ++at_;
    const std::size_t start = at_;
    std::int64_t made = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      made = made * 10 + (text_[at_] - '0');
      if (made > max_whole) return wrong("a number beyond 2^53");
    }
    const bool fraction = at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
    if (at_ == start || fraction || (text_[start] == '0' && at_ - start > 1))
      return wrong("expected an object, a list, a text or a whole number");
    return Json{negative ? -made : made};
  }

  Result<std::string> string() {
    if (!take('"')) return wrong("expected a text");
    std::string made;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) return wrong("a control character in a text");
      if (c != '\\') {
        made += c;
        continue;
      }
      if (at_ >= text_.size()) break;
      constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      const char escape = text_[at_++];
      if (const std::size_t k = letters.find(escape); k != letters.npos) made += meant[k];
      else if (escape == 'u') TRIREME_CHECK(unicode(made));
      else return wrong("an escape that JSON does not have");
    }
    if (!take('"')) return wrong("a text without end");
    if (!is_utf8(made)) return wrong("a text that is not UTF-8");
    return made;
  }

  Result<unsigned> four_digits() {
    unsigned code = 0;
    for (int k = 0; k < 4; ++k) {
      const std::size_t digit =
          at_ < text_.size() ? std::string_view("0123456789abcdef").find(static_cast<char>(text_[at_] | 0x20)) : 16;
      if (digit > 15) return wrong("expected four hex digits");
      code = code * 16 + static_cast<unsigned>(digit);
      ++at_;
    }
    return code;
  }

  // As UTF-8; two halves make one character.
  Status unicode(std::string& out) {
    TRIREME_TRY(first, four_digits());
    unsigned code = first;
    if (code >= 0xD800 && code < 0xE000) {
      if (code >= 0xDC00 || text_.substr(at_, 2) != "\\u") return wrong("half a character");
      at_ += 2;
      TRIREME_TRY(second, four_digits());
      if (second < 0xDC00 || second >= 0xE000) return wrong("half a character");
      code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
    }
    auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return put(code), Done{};
    if (code < 0x800) return put(0xC0 | code >> 6), put(0x80 | (code & 63)), Done{};
    if (code < 0x10000) put(0xE0 | code >> 12);
    else put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 63));
    return put(0x80 | (code >> 6 & 63)), put(0x80 | (code & 63)), Done{};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void print(std::string& out, const std::string& text) {
  constexpr std::string_view letters = "\"\\bfnrt", meant = "\"\\\b\f\n\r\t";
  out += '"';
  for (const char c : text) {
    if (const std::size_t k = meant.find(c); k != meant.npos) out += '\\', out += letters[k];
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else out += c;
  }
  out += '"';
}

void print(std::string& out, const Json& json) {
  if (const auto* number = std::get_if<std::int64_t>(&json.value)) out += std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&json.value)) print(out, *text);
  if (const auto* list = std::get_if<List>(&json.value)) {
    out += '[';
    for (std::size_t k = 0; k < list->size(); ++k) out += k ? "," : "", print(out, (*list)[k]);
    out += ']';
  }
  if (const auto* object = std::get_if<Object>(&json.value)) {
    out += '{';
    for (const auto& [name, value] : *object) {
      if (out.back() != '{') out += ',';
      print(out, name);
      out += ':';
      print(out, value);
    }
    out += '}';
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    const unsigned first = byte(at);
    const unsigned more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;  // bytes that follow
    unsigned code = more ? first & (0x3Fu >> more) : first;
    for (unsigned k = 1; k <= more; ++k) {
      if ((byte(at + k) & 0xC0) != 0x80) return false;
      code = code << 6 | (byte(at + k) & 0x3F);
    }
    constexpr unsigned least[] = {0, 0x80, 0x800, 0x10000};
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || code < least[more] || code > 0x10FFFF) return false;
    if (code >= 0xD800 && code < 0xE000) return false;
    at += more + 1;
  }
  return true;
}

Result<Json> parse(std::string_view text) { return Reader(text).whole(); }

std::string canonical(const Json& json) {
  std::string out;
  print(out, json);
  return out;
}

}  // namespace trireme::json
