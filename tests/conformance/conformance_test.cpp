// Every device gives the reference's bits.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices_for_test.hpp"
#include "plan/ops.hpp"
#include "problem/remarks.hpp"

namespace trireme {
namespace {

std::string digest_on(const DeviceEntry& device, const std::string& line, const RunOptions& options) {
  Prepared prepared = prepare_problem(parse_problem(line).value()).value();
  std::unique_ptr<Executable> executable =
      device.compile(prepared.program, facts_of(prepared.program, prepared.view())).value();
  executable->run(prepared.view(), options).value();
  return digest_of(prepared);
}

const DeviceEntry& reference() { return devices()[0]; }

// A tenth of a second a run is too much for many.
constexpr int most_ms = 30;

TEST(Conformance, RmsNormOnEveryDevice) {
  for (const char* direction : {"", " backward"})
    for (const char* type : {"f32", "bf16"})
      for (int rows : {1, 65})
        for (int columns : {1, 7, 255, 256, 257, 4096, 4097}) {
          std::string line =
              "rms_norm " + std::to_string(rows) + "x" + std::to_string(columns) + " x=" + type + direction;
          std::string wanted = digest_on(reference(), line, {});
          for (const DeviceEntry& device : devices()) {
            if (device.missing().size() || is_reference(device)) continue;
            for (RunOptions options :
                 {RunOptions{}, RunOptions{.threads = 2}, RunOptions{.threads = 3, .chunk_rows = 5}}) {
              if (!device.threads && options.threads == 2) continue;
              if (device.about_ms() > most_ms && (columns != 257 || rows == 1)) continue;
              EXPECT_EQ(digest_on(device, line, options), wanted)
                  << device.name << " threads " << options.threads << "   rerun: trireme verify \"" << line << "\"";
            }
          }
        }
}

// A gradient that does not come leaves sums of constants: dbeta = colsum(0).
TEST(Conformance, SumsOfConstantsOnEveryDevice) {
  for (std::string line : {"layer_norm 37x300 dy=none backward", "add_layer_norm 5x33 x=bf16 dy=none backward"}) {
    std::string wanted = digest_on(reference(), line, {});
    for (const DeviceEntry& device : devices()) {
      if (!device.missing().empty() || device.about_ms() > most_ms) continue;
      EXPECT_EQ(digest_on(device, line, {.threads = 2}), wanted) << device.name << " " << line;
    }
  }
}

// Rows with two strides and more, columns apart, expanded and backwards; one of them odd for every vector width.
TEST(Conformance, fault_09_EveryLayoutOnEveryDevice) {
  for (std::string line : {
           "rms_norm 12x5x128 x=f32:1920,128 y=f32:2000,300",
           "rms_norm 12x5x128 x=bf16+3:1923,129 y=bf16+1:2001,301 backward",
           "rms_norm 12x5x4097 x=bf16:0,4097 y=bf16",
           "softmax 12x5x33 x=f32+1:0,33 y=f32+3:-200,40",
           "layer_norm 7x3x300 dy=f32:1,7,21 x=f32:900,-300 dgamma=f32:-3 dbeta=f64:2 backward",
           "rms_norm 3x4x5x300 x=bf16:7000,400,-1300 y=bf16:1,3,8000,24 gamma=f32:0",
           "rms_norm 4x6x10x7 x=f32:420,70,1,10 axes=2 backward",
           "add_rms_norm 4x6x530 x=bf16:6500,1060,2 y=f16:5000,530 rstd=f32:1,4 h=f8e4m3:-531",
           "swiglu 2x2x2x2x2x2x2x65 gate=f16:1,2,4,8,16,32,64,128 y=f16:64,32,16,8,4,2,1,128",
           "rms_norm_heads 6x4x70 heads=4 x=f32:600,100 w=f32:1,4",
           "cross_entropy 5x3x40 x=f32:40,200 target=i32:1,5",
           "softmax 3x40x300 x=bf16:40,1,120 y=f32:12000,1,40",
           "layer_norm 300x260 x=f32:1,300 dy=f32:261 dx=f32:1,300 gamma=f32:-1 dgamma=f32:3 backward",
       }) {
    std::string wanted = digest_on(reference(), line, {});
    for (const DeviceEntry& device : devices()) {
      if (device.missing().size() || is_reference(device)) continue;
      EXPECT_EQ(digest_on(device, line, {.threads = 3, .chunk_rows = 7}), wanted)
          << device.name << "   rerun: trireme verify \"" << line << "\"";
    }
  }
}

// Every operator, by the lines its file asks for.
TEST(Conformance, EveryOperatorOnEveryDevice) {
  for (const OperatorText& each : operator_texts()) {
    Remarks remarks = parse_remarks(each.text).value();
    EXPECT_FALSE(remarks.tries.empty()) << each.name << " has no '#: try' line";
    for (const std::string& attempt : remarks.tries)
      for (const char* direction : {"", " backward"}) {
        std::string line = std::string(each.name) + " " + attempt + direction;
        std::string wanted = digest_on(reference(), line, {});
        for (const DeviceEntry* device : devices_here(most_ms)) {
          EXPECT_EQ(digest_on(*device, line, {.threads = 2}), wanted)
              << device->name << "   rerun: trireme verify \"" << line << "\"";
        }
      }
  }
}

}  // namespace
}  // namespace trireme
