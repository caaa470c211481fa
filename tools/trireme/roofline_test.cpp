// The picture's structure: everything inside its frame, labels over nothing, points above the roof said to be so.
#include "roofline.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>

#include "label_layout.hpp"

namespace trireme::cli {
namespace {

// A point that moves `gigabytes` a second beside copies of `copy`.
Measurement measured(const std::string& program, const std::string& rest, double intensity, double gigabytes,
                     double copy, const std::string& device = "cpu:avx512") {
  Measurement made{.line = program + " " + rest,
                   .program = program,
                   .backward = rest.find("backward") != rest.npos,
                   .device = device,
                   .how = device.starts_with("cuda") ? "NVIDIA H200, sm_90" : "AVX-512, simd lanes=16",
                   .command = "trireme bench \"" + program + " " + rest + "\"",
                   .instructions_per_byte = intensity,
                   .bytes = 1'000'000'000};
  if (rest.find("bf16") != rest.npos) made.element_bytes = 2;
  made.timing.runs = {1 / gigabytes};
  made.timing.copies = {{"memcpy", {1 / copy}}};
  return made;
}

std::vector<Measurement> suite() {
  std::vector<Measurement> all;
  double speed = 9;
  for (const char* program : {"rms_norm", "layer_norm", "add_rms_norm", "softmax", "swiglu", "geglu"})
    for (const char* shape : {"4096x4096", "65536x128", "256x65536"})
      for (const char* rest : {"", " x=bf16", " backward", " x=bf16 backward"}) {
        speed = speed > 19 ? 9 : speed + 0.37;
        all.push_back(
            measured(program, shape + std::string(rest), 0.8 + 0.4 * std::sin(speed) + 0.1 * speed, speed, 20));
      }
  return all;
}

const PictureFacts facts{.processor = "A Processor @ 2.0 GHz", .version = "1.2.3", .date = "2025-01-31"};

struct Shape {
  std::string tag, style, content;
  double x, y;
};

// Texts, circles and squares with their places; a test that draws one panel need not think of translations.
std::vector<Shape> shapes(const std::string& svg) {
  std::vector<Shape> all;
  const std::regex pattern("<(text|circle|rect) c?x=\"([-0-9.]+)\" c?y=\"([-0-9.]+)\"([^>]*)>([^<]*)");
  for (std::sregex_iterator it(svg.begin(), svg.end(), pattern), end; it != end; ++it)
    all.push_back({(*it)[1], (*it)[4], (*it)[5], std::stod((*it)[2]), std::stod((*it)[3])});
  return all;
}

std::vector<Box> label_boxes(const std::string& svg) {
  std::vector<Box> boxes;
  for (const Shape& each : shapes(svg))
    if (each.style.find("class=\"label\"") != std::string::npos)
      boxes.push_back({each.x, each.y - 9, each.x + 5.2 * static_cast<double>(each.content.size()), each.y + 2});
  return boxes;
}

TEST(Roofline, SaysWhereWhenAndByWhat) {
  const std::string svg = roofline_svg({measured("rms_norm", "64x64", 1, 10, 20)}, {{"cpu:avx512", 50}}, facts);
  EXPECT_NE(svg.find(">A Processor @ 2.0 GHz; trireme 1.2.3, 2025-01-31<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">cpu:avx512, 1 thread<"), std::string::npos);
  EXPECT_NE(svg.find(">copy: 20.0 GB/s<"), std::string::npos);
  EXPECT_NE(svg.find(">arithmetic: 50 G instructions/s<"), std::string::npos);
  EXPECT_NE(svg.find(">64x64<"), std::string::npos);
  EXPECT_EQ(svg.find("above the roof"), std::string::npos);
  const std::string gpu = roofline_svg({measured("rms_norm", "64x64", 1, 10, 20, "cuda")}, {}, facts);
  EXPECT_NE(gpu.find(">NVIDIA H200; trireme 1.2.3, 2025-01-31<"), std::string::npos) << gpu;
}

TEST(Roofline, PointsAboveARoofAreSaidToBe) {
  // Above the copy's roof, above that of arithmetic, and under both.
  const std::string svg = roofline_svg({measured("rms_norm", "1x1", 0.5, 25, 20),
                                        measured("softmax", "2x2", 10, 12, 20), measured("geglu", "3x3", 10, 9, 20)},
                                       {{"cpu:avx512", 100}}, facts);
  EXPECT_NE(svg.find(">2 points lie above the roof"), std::string::npos) << svg;
  std::size_t rings = 0;
  for (const Shape& each : shapes(svg))
    rings += each.tag == "circle" && each.style.find("fill=\"none\"") != std::string::npos;
  EXPECT_EQ(rings, 2u);
  EXPECT_NE(roofline_svg({measured("rms_norm", "1x1", 0.5, 25, 20)}, {}, facts).find(">1 point lies above the roof"),
            std::string::npos);
  EXPECT_EQ(roofline_svg({measured("rms_norm", "1x1", 0.5, 20.5, 20)}, {}, facts).find("above the roof"),
            std::string::npos);  // within what runs differ by
}

TEST(Roofline, LabelsLieOverNothing) {
  const std::vector<Measurement> all = suite();
  const std::string svg = roofline_svg(all, {{"cpu:avx512", 30}}, facts);
  const std::vector<Box> boxes = label_boxes(svg);
  EXPECT_GT(boxes.size(), 24u);  // of 72 in a small picture
  const std::regex roof("<line x1=\"([0-9.]+)\" y1=\"([0-9.]+)\" x2=\"([0-9.]+)\" y2=\"([0-9.]+)\"[^>]*width=\"2.5\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), roof), end; it != end; ++it) {
    const double x1 = std::stod((*it)[1]), y1 = std::stod((*it)[2]), x2 = std::stod((*it)[3]), y2 = std::stod((*it)[4]);
    for (double part = 0; part <= 1; part += 1.0 / 512)
      for (const Box& box : boxes) {
        const double x = x1 + part * (x2 - x1), y = y1 + part * (y2 - y1);
        EXPECT_FALSE(box.meets({x - 0.5, y - 0.5, x + 0.5, y + 0.5})) << x << " " << y;
      }
  }
  std::vector<Shape> points;
  for (const Shape& each : shapes(svg))
    if (each.style.find("class=\"point\"") != std::string::npos) points.push_back(each);
  EXPECT_EQ(points.size(), all.size());
  for (std::size_t k = 0; k < boxes.size(); ++k) {
    for (std::size_t other = k + 1; other < boxes.size(); ++other) EXPECT_FALSE(boxes[k].meets(boxes[other]));
    for (const Shape& point : points) {
      const double middle = point.tag == "rect" ? 5 : 0;
      EXPECT_FALSE(
          boxes[k].meets({point.x + middle - 4, point.y + middle - 4, point.x + middle + 4, point.y + middle + 4}));
    }
  }
  EXPECT_NE(svg.find(">arithmetic: 30 G instructions/s<"), std::string::npos);
  EXPECT_NE(svg.find(std::to_string(all.size() - boxes.size()) + " without room for a label"), std::string::npos);
  if (const char* path = getenv("TRIREME_PICTURE")) std::ofstream(path) << svg;  // to look at
}

// Roofs far from the points, points far from each other, one point alone, many programs.
TEST(Roofline, EverythingStaysInTheFrame) {
  std::vector<Measurement> many;
  for (int k = 0; k < 30; ++k)
    many.push_back(measured("program_number_" + std::to_string(k), "8x8", 1 + k * 0.1, 5 + k, 40));
  const struct {
    std::vector<Measurement> points;
    double arithmetic;
  } cases[] = {{{measured("rms_norm", "8x8", 1, 10, 20)}, 0},
               {{measured("rms_norm", "8x8", 1, 10, 20)}, 1e-3},
               {{measured("rms_norm", "8x8", 1, 10, 20)}, 1e6},
               {{measured("rms_norm", "8x8", 1e-9, 1e-3, 20), measured("rms_norm", "9x9", 4096, 900, 20)}, 55},
               {many, 60},
               {suite(), 30}};
  for (const auto& each : cases) {
    const std::string svg = roofline_svg(each.points, {{"cpu:avx512", each.arithmetic}}, facts);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    for (const Shape& shape : shapes(svg)) {
      EXPECT_TRUE(shape.x >= 0 && shape.x <= 900 && shape.y >= 0 && shape.y <= 540) << shape.tag << shape.content;
      if (shape.style.find("class=\"point\"") == std::string::npos) continue;
      EXPECT_TRUE(shape.x >= 60 && shape.x <= 672 && shape.y >= 90 && shape.y <= 484) << shape.x << " " << shape.y;
    }
    for (const Box& box : label_boxes(svg))
      EXPECT_TRUE((Box{70, 96, 670, 484}).holds(box)) << box.left << " " << box.top;
    // Lines of roofs may reach further; they are cut off.
    EXPECT_NE(svg.find("clip-path=\"url(#frame0)\""), std::string::npos);
  }
}

TEST(LabelLayout, TakesTheNearestFreePlace) {
  LabelLayout layout({0, 0, 100, 100});
  const Box first = layout.place(20, 50, 30, 10).value();
  EXPECT_EQ(first.left, 29);  // to the right
  const Box second = layout.place(20, 50, 30, 10).value();
  EXPECT_FALSE(first.meets(second));
  EXPECT_FALSE(layout.place(50, 50, 200, 10));  // wider than the frame
  layout.keep_clear({0, 0, 100, 100});
  EXPECT_FALSE(layout.place(50, 50, 10, 10));
}

}  // namespace
}  // namespace trireme::cli
