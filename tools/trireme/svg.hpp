// The few shapes that pictures are made of.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace trireme::cli {

class Svg {
 public:
  static std::string escaped(std::string_view text) {
    std::string out;
    for (char c : text) {
      if (c == '<') out += "&lt;";
      else if (c == '>') out += "&gt;";
      else if (c == '&') out += "&amp;";
      else if (c == '"') out += "&quot;";
      else out += c;
    }
    return out;
  }

  void raw(const std::string& text) { out_ += text; }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", x1, y1,
        x2, y2, colour, width);
  }
  void text(double x, double y, const char* anchor, std::string_view content, std::string_view style) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style,
                        escaped(content));
  }
  // `inside`: what stands between the tags, such as a title.
  void circle(double x, double y, double radius, std::string_view style, std::string_view inside = {}) {
    out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}>{}</circle>\n", x, y, radius, style, inside);
  }
  void square(double x, double y, double side, std::string_view style, std::string_view inside = {}) {
    out_ += fmt::format("<rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2}\" height=\"{2}\" {3}>{4}</rect>\n", x - side / 2,
                        y - side / 2, side, style, inside);
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

}  // namespace trireme::cli
