#include "roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench_report.hpp"
#include "label_layout.hpp"
#include "plan/devices.hpp"
#include "svg.hpp"

namespace trireme::cli {
namespace {

constexpr double panel_width = 900, panel_height = 540, legend_width = 230;
constexpr Box frame{70, 96, panel_width - legend_width, panel_height - 58};
constexpr double label_size = 10, letter_width = 6.1;  // pixels; wider fonts than Helvetica may stand in

// Colours that people who see few of them can tell apart (Okabe and Ito).
constexpr std::array<const char*, 8> colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                "#E69F00", "#56B4E9", "#000000", "#8B5A2B"};

// Runs differ by some percent by themselves.
constexpr double above = 1.03;

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
};

std::string power_text(int power) {
  return power >= 0 ? std::to_string(std::int64_t{1} << power) : fmt::format("1/{}", std::int64_t{1} << -power);
}

double speed_of(const Measurement& measured) { return gigabytes_per_second(measured, best(measured.timing.runs)); }
double intensity_of(const Measurement& measured) { return std::max(measured.instructions_per_byte, 1e-3); }

class Panel {
 public:
  Panel(std::vector<const Measurement*> points, double arithmetic, const PictureFacts& facts)
      : points_(std::move(points)), arithmetic_(arithmetic), facts_(facts), x_(range_x()), y_(range_y()) {
    for (const Measurement* each : points_)
      if (std::find(names_.begin(), names_.end(), each->program) == names_.end()) names_.push_back(each->program);
  }

  std::string draw(std::size_t number) {
    svg_.raw(
        fmt::format("<g transform=\"translate(0,{})\" font-family=\"Helvetica, Arial, sans-serif\" "
                    "font-size=\"12\">\n",
                    static_cast<double>(number) * panel_height));
    title();
    axes();
    for (const Measurement* each : points_) labels_.keep_clear(around(*each, is_above(*each) ? 11 : 7));
    roofs(number);
    for (const Measurement* each : points_) label(*each);
    for (const Measurement* each : points_) point(*each);
    legend();
    svg_.raw("</g>\n");
    return svg_.str();
  }

 private:
  double bandwidth() const {
    std::vector<double> all;
    for (const Measurement* each : points_)
      all.push_back(gigabytes_per_second(*each, best(fastest_copy(each->timing).seconds)));
    return median(all);
  }
  double roof_at(double intensity) const {
    return arithmetic_ > 0 ? std::min(bandwidth(), arithmetic_ / intensity) : bandwidth();
  }
  bool is_above(const Measurement& measured) const {
    return speed_of(measured) > above * roof_at(intensity_of(measured));
  }
  Scale range_x() const {
    double least = 1e9, most = 0;
    for (const Measurement* each : points_) {
      least = std::min(least, intensity_of(*each));
      most = std::max(most, intensity_of(*each));
    }
    if (arithmetic_ > 0) most = std::max(most, arithmetic_ / bandwidth() * 1.5);
    return {least, most, frame.left, frame.right};
  }
  Scale range_y() const {
    double least = bandwidth(), most = bandwidth() * 1.1;
    for (const Measurement* each : points_) {
      least = std::min(least, speed_of(*each));
      most = std::max(most, speed_of(*each));
    }
    return {least, most, frame.bottom, frame.top};
  }

  // Where it was measured, by what, when; and what is not as it should be.
  void title() {
    const Measurement& any = *points_.front();
    const DeviceEntry* device = find_device(any.device);
    const bool is_gpu = device && device->accelerator;
    const std::string machine = is_gpu ? any.how.substr(0, any.how.find(',')) : facts_.processor;
    const std::string threads =
        is_gpu ? "" : fmt::format(", {} {}", any.threads, any.threads == 1 ? "thread" : "threads");
    svg_.text(frame.left, 26, "start", any.device + threads, "font-size=\"18\" font-weight=\"bold\"");
    svg_.text(frame.left, 46, "start", fmt::format("{}; trireme {}, {}", machine, facts_.version, facts_.date),
              "fill=\"#444\"");
    svg_.text(frame.left, 64, "start",
              arithmetic_ > 0 ? "speed of memory under two roofs, both measured in the same run"
                              : "speed of memory under the roof of a copy, measured in the same run",
              "fill=\"#666\"");
    const auto count = std::count_if(points_.begin(), points_.end(), [&](const auto* each) { return is_above(*each); });
    if (count)
      svg_.text(
          frame.left, 82, "start",
          fmt::format("{} above the roof (ringed): the machine was busy while copies were timed, or arrays lie in "
                      "a cache",
                      count == 1 ? "1 point lies" : fmt::format("{} points lie", count)),
          "class=\"above\" fill=\"#b00020\"");
  }

  void axes() {
    for (int power = x_.first; power <= x_.last; ++power) {
      const double x = x_.at(std::exp2(power));
      svg_.line(x, frame.top, x, frame.bottom, "#e4e4e4", 1);
      svg_.text(x, frame.bottom + 18, "middle", power_text(power), "fill=\"#444\"");
    }
    for (int power = y_.first; power <= y_.last; ++power) {
      const double y = y_.at(std::exp2(power));
      svg_.line(frame.left, y, frame.right, y, "#e4e4e4", 1);
      svg_.text(frame.left - 8, y + 4, "end", power_text(power), "fill=\"#444\"");
    }
    svg_.text((frame.left + frame.right) / 2, panel_height - 14, "middle", "instructions per byte moved",
              "fill=\"#444\"");
    svg_.raw(fmt::format(
        "<text transform=\"translate(20,{}) rotate(-90)\" text-anchor=\"middle\" fill=\"#444\">GB/s</text>\n",
        (frame.top + frame.bottom) / 2));
  }

  // The copy's speed, and beyond where they meet what arithmetic allows; in logarithms two straight lines, cut off at
  // the frame.
  void roofs(std::size_t number) {
    const double roof = bandwidth(), y = y_.at(roof);
    const double meet = arithmetic_ > 0 ? std::clamp(x_.at(arithmetic_ / roof), frame.left, frame.right) : frame.right;
    svg_.raw(
        fmt::format("<clipPath id=\"frame{0}\"><rect x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{4}\"/></clipPath>\n"
                    "<g clip-path=\"url(#frame{0})\">\n",
                    number, frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top));
    roof_line(frame.left, y, meet, y, "#222");
    if (arithmetic_ > 0) {
      const double least = std::exp2(x_.first), most = std::exp2(x_.last);
      const double from = std::max(least, arithmetic_ / roof);
      roof_line(x_.at(from), y_.at(arithmetic_ / from), frame.right, y_.at(arithmetic_ / most), "#b36b00");
    }
    svg_.raw("</g>\n");
    note(frame.left, y, meet, y, fmt::format("copy: {:.1f} GB/s", roof), "#222");
    if (arithmetic_ > 0 && meet < frame.right) {
      const double end = y_.at(arithmetic_ / std::exp2(x_.last));
      const double start = y_.at(arithmetic_ / std::max(std::exp2(x_.first), arithmetic_ / roof));
      note(meet, start, frame.right, end, fmt::format("arithmetic: {:.0f} G instructions/s", arithmetic_), "#b36b00");
    }
  }

  void roof_line(double x1, double y1, double x2, double y2, const char* colour) {
    svg_.line(x1, y1, x2, y2, colour, 2.5);
    labels_.keep_clear_of_line(x1, y1, x2, y2);
  }

  // What a roof is called, beside any of its parts that has room.
  void note(double x1, double y1, double x2, double y2, const std::string& content, const char* colour) {
    for (double part : {0.5, 0.3, 0.7, 0.1, 0.9, 0.0, 1.0}) {
      const std::optional<Box> box =
          labels_.place(x1 + part * (x2 - x1), y1 + part * (y2 - y1), static_cast<double>(content.size()) * 7, 14);
      if (!box) continue;
      svg_.text(box->left, box->bottom - 3, "start", content, fmt::format("fill=\"{}\"", colour));
      return;
    }
  }

  Box around(const Measurement& measured, double radius) const {
    const double x = x_.at(intensity_of(measured)), y = y_.at(speed_of(measured));
    return {x - radius, y - radius, x + radius, y + radius};
  }

  const char* colour_of(const Measurement& measured) const {
    const auto found = std::find(names_.begin(), names_.end(), measured.program);
    return colours[static_cast<std::size_t>(found - names_.begin()) % colours.size()];
  }

  // The rest of the line: colours say which program it is, as far as they go.
  void label(const Measurement& measured) {
    std::string content = measured.line;
    if (names_.size() <= colours.size() && content.starts_with(measured.program + " "))
      content.erase(0, measured.program.size() + 1);
    if (const std::size_t at = content.find(" backward"); at != content.npos) content.erase(at, 9);
    const double x = x_.at(intensity_of(measured)), y = y_.at(speed_of(measured));
    const std::optional<Box> box =
        labels_.place(x, y, static_cast<double>(content.size()) * letter_width, label_size + 2);
    if (!box) {
      ++unlabelled_;
      return;
    }
    const double to_x = std::clamp(x, box->left, box->right), to_y = std::clamp(y, box->top, box->bottom);
    if (std::hypot(to_x - x, to_y - y) > 12) svg_.line(x, y, to_x, to_y, "#bbb", 0.8);
    svg_.text(box->left, box->bottom - 2.5, "start", content,
              fmt::format("class=\"label\" font-size=\"{}\" fill=\"{}\"", label_size, colour_of(measured)));
  }

  // Full: forward; hollow: backward. Round: 4 bytes and more an element; square: fewer.
  void point(const Measurement& measured) {
    const double x = x_.at(intensity_of(measured)), y = y_.at(speed_of(measured));
    const char* colour = colour_of(measured);
    const std::string style =
        fmt::format("class=\"point\" fill=\"{}\" stroke=\"{}\" stroke-width=\"2\" fill-opacity=\"0.85\"",
                    measured.backward ? "white" : colour, colour);
    const std::string title = fmt::format("<title>{}\n{:.1f} GB/s, {:.2f} of the copy{}\n{}</title>",
                                          Svg::escaped(measured.line), speed_of(measured), share_of_copy(measured),
                                          is_above(measured) ? "; above the roof" : "", Svg::escaped(measured.command));
    if (is_above(measured)) svg_.circle(x, y, 10, "fill=\"none\" stroke=\"#b00020\" stroke-width=\"1.5\"");
    if (measured.element_bytes >= 4) svg_.circle(x, y, 5.5, style, title);
    else svg_.square(x, y, 10, style, title);
  }

  void legend() {
    const std::size_t lines = names_.size() + 5;
    const double x = frame.right + 24;
    const double step = std::min(20.0, (frame.bottom - frame.top) / static_cast<double>(lines));
    double y = frame.top + 8;
    auto says = [&](std::string_view what, const char* style) {
      svg_.text(x + 14, y + 4, "start", what, style);
      y += step;
    };
    for (std::size_t k = 0; k < names_.size(); ++k) {
      svg_.circle(x, y, 5, fmt::format("fill=\"{}\"", colours[k % colours.size()]));
      says(names_[k], "fill=\"#222\"");
    }
    y += step / 2;
    const char* grey = "fill=\"#666\"";
    svg_.circle(x, y, 5, grey);
    says("forward, 4 bytes or more", grey);
    svg_.square(x, y, 9, grey);
    says("fewer bytes an element", grey);
    svg_.circle(x, y, 4.5, "fill=\"white\" stroke=\"#666\" stroke-width=\"2\"");
    says("backward", grey);
    if (unlabelled_) says(fmt::format("{} without room for a label", unlabelled_), grey);
  }

  std::vector<const Measurement*> points_;
  double arithmetic_;
  const PictureFacts& facts_;
  Scale x_, y_;
  std::vector<std::string> names_;  // of programs, as they come
  LabelLayout labels_{frame};
  int unlabelled_ = 0;
  Svg svg_;
};

}  // namespace

std::string roofline_svg(const std::vector<Measurement>& all, const ArithmeticRoofs& roofs, const PictureFacts& facts) {
  std::vector<std::string> devices;
  for (const Measurement& each : all)
    if (std::find(devices.begin(), devices.end(), each.device) == devices.end()) devices.push_back(each.device);
  const double height = panel_height * static_cast<double>(std::max<std::size_t>(devices.size(), 1));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      panel_width, height);
  for (std::size_t k = 0; k < devices.size(); ++k) {
    std::vector<const Measurement*> points;
    for (const Measurement& each : all)
      if (each.device == devices[k]) points.push_back(&each);
    const auto roof = roofs.find(devices[k]);
    svg += Panel(std::move(points), roof == roofs.end() ? 0 : roof->second, facts).draw(k);
  }
  return svg + "</svg>\n";
}

}  // namespace trireme::cli
