#include "devices/cuda/include_scan.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace trireme::cuda {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c & 0x80);
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }
template <typename List>
bool is_one_of(std::string_view word, const List& list) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

constexpr std::string_view raw_prefixes[] = {"R", "u8R", "uR", "UR", "LR"};
constexpr std::string_view including[] = {"include", "include_next", "import", "embed"};
constexpr std::string_view asking[] = {"if", "elif", "define"};
constexpr std::string_view has_include[] = {"__has_include", "__has_include_next", "__has_embed"};
constexpr std::string_view of_the_hour[] = {"__DATE__", "__TIME__", "__TIMESTAMP__"};

// Characters after phase 2: a backslash at the end of a line is not there, nor is the line's end.
class Characters {
 public:
  explicit Characters(std::string_view text) : text_(text) { skip_splices(); }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }
  void next() {
    ++at_;
    skip_splices();
  }
  bool take(char c) {
    if (at_end() || peek() != c) return false;
    next();
    return true;
  }
  bool take(char first, char second) {
    Characters ahead = *this;
    if (!ahead.take(first) || !ahead.take(second)) return false;
    *this = ahead;
    return true;
  }
  std::string name() {
    std::string result;
    for (; !at_end() && in_name(peek()); next()) result += peek();
    return result;
  }
  // Up to `end`, which is taken; false if the line ends before.
  bool until(char end, std::string& result) {
    for (; !at_end() && peek() != '\n'; next()) {
      if (take(end)) return true;
      result += peek();
    }
    return false;
  }
  // Behind R": phase 2 is undone here. False if the string does not end.
  bool raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return false;
    const std::string end = ")" + std::string(text_.substr(at_, open - at_)) + "\"";
    const std::size_t close = text_.find(end, open + 1);
    if (close == std::string_view::npos) return false;
    at_ = close + end.size();
    skip_splices();
    return true;
  }

 private:
  void skip_splices() {
    for (;;) {
      const std::string_view rest = text_.substr(std::min(at_, text_.size()));
      if (rest.starts_with("\\\n")) at_ += 2;
      else if (rest.starts_with("\\\r\n")) at_ += 3;
      else return;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : in_(text) {
    const std::string trigraph = "??";  // in one literal with / or = it would be one itself
    if (text.find(trigraph + '/') != text.npos || text.find(trigraph + '=') != text.npos)
      doubt("it has trigraphs, which count or not as the C++ version says");
  }

  IncludeScan scan() {
    for (bool line_begins = true; !in_.at_end();) {
      if (skip_blanks()) continue;
      if (in_.take('\n')) {
        line_begins = true;
      } else if (line_begins && (in_.take('#') || in_.take('%', ':'))) {
        directive();
        line_begins = false;
      } else {
        token();
        line_begins = false;
      }
    }
    return std::move(found_);
  }

 private:
  // A blank or a comment; false if there is none here.
  bool skip_blanks() {
    if (!in_.at_end() && is_blank(in_.peek())) return in_.next(), true;
    if (in_.take('/', '/')) {
      while (!in_.at_end() && in_.peek() != '\n') in_.next();
      return true;
    }
    if (!in_.take('/', '*')) return false;
    while (!in_.at_end() && !in_.take('*', '/')) in_.next();
    return true;
  }
  void skip_all_blanks() {
    while (skip_blanks()) {
    }
  }

  void directive() {
    skip_all_blanks();
    const std::string word = in_.name();
    if (is_one_of(word, including)) {
      skip_all_blanks();
      if (!header_name() && !in_.at_end() && in_.peek() != '\n') doubt("it includes what a macro names");
      return;
    }
    if (!is_one_of(word, asking)) return;
    std::string defined;
    std::vector<std::string> parameters;
    if (word == "define") {
      skip_all_blanks();
      defined = in_.name();
      if (in_.take('(')) parameters = parameter_names();
    }
    while (!in_.at_end() && in_.peek() != '\n')
      if (!skip_blanks()) call(token(), word == "define", defined, parameters);
  }

  bool header_name() {
    std::string name;
    const bool quoted = in_.peek() == '"';
    if (!in_.take('<') && !in_.take('"')) return false;
    if (!in_.until(quoted ? '"' : '>', name)) doubt("the name of a file does not end");
    found_.names.push_back({name, quoted});
    return true;
  }

  std::vector<std::string> parameter_names() {
    std::vector<std::string> names;
    while (!in_.at_end() && in_.peek() != '\n' && !in_.take(')')) {
      if (std::string name = in_.name(); !name.empty()) names.push_back(std::move(name));
      else if (!skip_blanks()) in_.next();
    }
    return names;
  }

  // Behind a token of a condition or definition: what it is applied to, if it is a name and that may be a file.
  void call(const std::string& macro, bool defining, const std::string& defined,
            const std::vector<std::string>& parameters) {
    if (macro.empty()) return;
    skip_all_blanks();
    if (!in_.take('(')) {
      if (defining && is_one_of(macro, has_include)) doubt("it gives " + macro + " another name");
      return;
    }
    skip_all_blanks();
    if (in_.peek() == '<' && !defining) {  // no expression begins so
      header_name();
    } else if (in_.peek() == '"') {
      Characters ahead = in_;  // it may be a string as well, and is read as one
      ahead.next();
      if (std::string name; ahead.until('"', name)) found_.names.push_back({name, true});
    } else {
      Characters ahead = in_;
      const std::string argument = ahead.name();
      const bool parameter = is_one_of(argument, parameters);
      found_.calls.push_back({macro, argument, parameter ? defined : ""});
    }
  }

  // Takes one token; returns it if it is a name.
  std::string token() {
    const char c = in_.peek();
    if (is_digit(c)) {  // with separators, 1'000
      while (!in_.at_end() && (in_name(in_.peek()) || in_.peek() == '.' || separates_digits())) in_.next();
    } else if (in_name(c)) {
      std::string name = in_.name();
      if (is_one_of(name, raw_prefixes) && in_.take('"') && !in_.raw_string()) doubt("a raw string does not end");
      if (is_one_of(name, of_the_hour)) doubt("it asks for the date (" + name + ")");
      return name;
    } else if (c == '"' || c == '\'') {
      in_.next();
      while (!in_.at_end() && in_.peek() != '\n' && !in_.take(c)) {
        if (in_.take('\\') && (in_.at_end() || in_.peek() == '\n')) break;
        in_.next();
      }
    } else {
      in_.next();
    }
    return {};
  }

  bool separates_digits() const {
    Characters ahead = in_;
    return ahead.take('\'') && !ahead.at_end() && in_name(ahead.peek());
  }

  void doubt(std::string why) {
    if (found_.unsure.empty()) found_.unsure = std::move(why);
  }

  Characters in_;
  IncludeScan found_;
};

}  // namespace

IncludeScan scan_includes(std::string_view text) { return Scanner(text.substr(0, text.find('\0'))).scan(); }

std::string unsure_of(std::span<const IncludeScan> scans) {
  std::set<std::string> ask(std::begin(has_include), std::end(has_include));
  for (bool more = true; more;) {
    more = false;
    for (const IncludeScan& scan : scans)
      for (const IncludeScan::Call& call : scan.calls)
        if (!call.definition.empty() && ask.contains(call.macro)) more |= ask.insert(call.definition).second;
  }
  for (const IncludeScan& scan : scans) {
    if (!scan.unsure.empty()) return scan.unsure;
    for (const IncludeScan::Call& call : scan.calls)
      if (call.definition.empty() && ask.contains(call.macro))
        return "it asks with " + call.macro + " for a file that a macro names";
  }
  return "";
}

}  // namespace trireme::cuda
