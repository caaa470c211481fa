#include "roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench_report.hpp"

namespace trireme::cli {
namespace {

constexpr double panel_width = 860, panel_height = 500, left = 70, right = 220, top = 64, bottom = 58;
constexpr const char* font = "font-family=\"Helvetica, Arial, sans-serif\"";

// Colours that people who see few of them can tell apart (Okabe and Ito).
constexpr std::array<const char*, 8> colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                "#E69F00", "#56B4E9", "#000000", "#8B5A2B"};

std::string escaped(std::string_view text) {
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

// A range of powers of two that holds all values, and where they lie between two pixels.
struct Scale {
  int first, last;
  double from, to;
  Scale(double least, double most, double from, double to)
      : first(static_cast<int>(std::floor(std::log2(least)))),
        last(std::max(first + 1, static_cast<int>(std::ceil(std::log2(most))))),
        from(from),
        to(to) {}
  double at(double value) const { return from + (std::log2(value) - first) / (last - first) * (to - from); }
  double value(double pixel) const { return std::exp2(first + (pixel - from) / (to - from) * (last - first)); }
};

std::string power_text(int power) {
  return power >= 0 ? std::to_string(std::int64_t{1} << power) : fmt::format("1/{}", std::int64_t{1} << -power);
}

class Panel {
 public:
  Panel(const std::string& device, std::vector<const Measurement*> points, double arithmetic)
      : points_(std::move(points)), device_(device), arithmetic_(arithmetic), x_(range_x()), y_(range_y()) {}

  std::string draw(double offset) {
    out_ = fmt::format("<g transform=\"translate(0,{})\" {} font-size=\"12\">\n", offset, font);
    title();
    axes();
    roofs();
    for (const Measurement* each : points_) point(*each);
    legend();
    return out_ + "</g>\n";
  }

 private:
  double bandwidth() const {
    std::vector<double> all;
    for (const Measurement* each : points_)
      all.push_back(gigabytes_per_second(*each, best(fastest_copy(each->timing).seconds)));
    return median(all);
  }
  Scale range_x() const {
    double least = 1e9, most = 0;
    for (const Measurement* each : points_) {
      least = std::min(least, each->instructions_per_byte);
      most = std::max(most, each->instructions_per_byte);
    }
    if (arithmetic_ > 0) most = std::max(most, arithmetic_ / bandwidth() * 1.5);
    return {std::max(least, 1e-3), std::max(most, 2e-3), left, panel_width - right};
  }
  Scale range_y() const {
    double least = bandwidth(), most = bandwidth() * 1.1;
    for (const Measurement* each : points_) {
      double speed = gigabytes_per_second(*each, best(each->timing.runs));
      least = std::min(least, speed);
      most = std::max(most, speed);
    }
    return {least, most, panel_height - bottom, top};
  }

  void title() {
    const Measurement& any = *points_.front();
    text(left, 26, "start",
         fmt::format("{}{}", device_, any.threads > 1 ? fmt::format(", {} threads", any.threads) : ""),
         "font-size=\"18\" font-weight=\"bold\"");
    text(left, 46, "start", "speed of memory under two roofs, both measured in the same run", "fill=\"#666\"");
  }

  void axes() {
    for (int power = x_.first; power <= x_.last; ++power) {
      double x = x_.at(std::exp2(power));
      line(x, top, x, panel_height - bottom, "#e4e4e4", 1);
      text(x, panel_height - bottom + 18, "middle", power_text(power), "fill=\"#444\"");
    }
    for (int power = y_.first; power <= y_.last; ++power) {
      double y = y_.at(std::exp2(power));
      line(left, y, panel_width - right, y, "#e4e4e4", 1);
      text(left - 8, y + 4, "end", power_text(power), "fill=\"#444\"");
    }
    text((left + panel_width - right) / 2, panel_height - 14, "middle", "instructions per byte moved", "fill=\"#444\"");
    out_ += fmt::format(
        "<text transform=\"translate(20,{}) rotate(-90)\" text-anchor=\"middle\" fill=\"#444\">GB/s</text>\n",
        (top + panel_height - bottom) / 2);
  }

  // The copy's speed, and beyond where they meet what arithmetic allows.
  void roofs() {
    double roof = bandwidth(), y = y_.at(roof), end = panel_width - right;
    if (arithmetic_ > 0) {
      double least = std::exp2(y_.first);
      double meet = std::clamp(x_.at(arithmetic_ / roof), left, end);
      double low_x = std::min(end, x_.at(arithmetic_ / least));
      double start_y = std::max(y, y_.at(arithmetic_ / x_.value(meet)));
      double low_y = y_.at(arithmetic_ / x_.value(low_x));
      if (low_x > meet) {
        out_ += fmt::format("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"#f6f1ea\"/>\n", meet,
                            start_y, low_x, low_y, low_x, start_y);
        line(meet, start_y, low_x, low_y, "#b36b00", 2.5);
        text(meet + 0.5 * (low_x - meet) + 10, 0.5 * (start_y + low_y) - 6, "start",
             fmt::format("arithmetic: {:.0f} G instructions/s", arithmetic_), "fill=\"#b36b00\"");
      }
      end = std::min(end, std::max(meet, left + 40));
    }
    line(left, y, end, y, "#222", 2.5);
    text(left + 6, y - 7, "start", fmt::format("copy: {:.1f} GB/s", roof), "fill=\"#222\"");
  }

  std::string colour_of(const std::string& name) {
    auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) found = names_.insert(names_.end(), name);
    return colours[static_cast<std::size_t>(found - names_.begin()) % colours.size()];
  }

  // Full: forward; hollow: backward. Round: 4 bytes and more an element; square: fewer.
  void point(const Measurement& measured) {
    double speed = gigabytes_per_second(measured, best(measured.timing.runs));
    double x = x_.at(std::max(measured.instructions_per_byte, 1e-3)), y = y_.at(speed);
    std::string colour = colour_of(measured.program);
    std::string style = fmt::format("fill=\"{}\" stroke=\"{}\" stroke-width=\"2\" fill-opacity=\"0.85\"",
                                    measured.backward ? "white" : colour, colour);
    std::string shape =
        measured.element_bytes >= 4
            ? fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5.5\" {}>", x, y, style)
            : fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" {}>", x - 5, y - 5, style);
    out_ += fmt::format("{}<title>{}\n{:.1f} GB/s, {:.2f} of the copy\n{}</title></{}>\n", shape,
                        escaped(measured.line), speed, share_of_copy(measured), escaped(measured.command),
                        measured.element_bytes >= 4 ? "circle" : "rect");
  }

  void legend() {
    double x = panel_width - right + 24, y = top + 8;
    for (std::size_t k = 0; k < names_.size(); ++k, y += 20) {
      out_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"5.5\" fill=\"{}\"/>\n", x, y, colours[k % colours.size()]);
      text(x + 14, y + 4, "start", names_[k], "fill=\"#222\"");
    }
    y += 12;
    auto sign = [&](const std::string& shape, const char* what) {
      out_ += shape;
      text(x + 14, y + 4, "start", what, "fill=\"#666\"");
      y += 20;
    };
    auto circle = [&](const char* fill) {
      return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"5\" fill=\"{}\" stroke=\"#666\" stroke-width=\"2\"/>\n", x, y,
                         fill);
    };
    auto square = [&] {
      return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"9\" height=\"9\" fill=\"#666\"/>\n", x - 4.5, y - 4.5);
    };
    sign(circle("#666"), "forward, 4 bytes or more");
    sign(square(), "fewer bytes an element");
    sign(circle("white"), "backward");
  }

  void line(double x1, double y1, double x2, double y2, const char* colour, double width) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", x1, y1,
        x2, y2, colour, width);
  }
  void text(double x, double y, const char* anchor, const std::string& content, const std::string& style) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style,
                        escaped(content));
  }

  std::vector<const Measurement*> points_;
  std::string device_;
  double arithmetic_;
  Scale x_, y_;
  std::vector<std::string> names_;
  std::string out_;
};

}  // namespace

std::string roofline_svg(const std::vector<Measurement>& all, const ArithmeticRoofs& roofs) {
  std::vector<std::string> devices;
  for (const Measurement& each : all)
    if (std::find(devices.begin(), devices.end(), each.device) == devices.end()) devices.push_back(each.device);
  double height = panel_height * static_cast<double>(std::max<std::size_t>(devices.size(), 1));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      panel_width, height);
  for (std::size_t k = 0; k < devices.size(); ++k) {
    std::vector<const Measurement*> points;
    for (const Measurement& each : all)
      if (each.device == devices[k]) points.push_back(&each);
    auto roof = roofs.find(devices[k]);
    svg += Panel(devices[k], std::move(points), roof == roofs.end() ? 0 : roof->second)
               .draw(static_cast<double>(k) * panel_height);
  }
  return svg + "</svg>\n";
}

}  // namespace trireme::cli
