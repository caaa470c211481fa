// Lane 0 of SIMD instructions as WebAssembly 1.0: the listing beside each function, and what has no such form.
#include "targets/wasm/one_lane.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace trireme::wasm {
namespace {

std::string one_line(const std::string& text) {
  std::string words;
  for (char letter : text)
    if (letter != ' ' && letter != '\n') words += letter;
    else if (!words.empty() && words.back() != ' ') words += ' ';
  return words;
}

// The listing of the function (v128, v128) -> v128 that `write` writes.
std::string lane_0_of(const std::function<void(Function&, Local<V128>, Local<V128>)>& write, Type value = Type::F32) {
  Function f("f", Type::V128);
  const auto a = f.parameter<V128>("a"), b = f.parameter<V128>("b");
  write(f, a, b);
  const Result<Body> made = one_lane(f.finish().value(), value);
  return made ? one_line(text(*made)) : made.error().message;
}
void expect_listed(const std::string& listing, std::string_view wanted) {
  EXPECT_NE(listing.find(wanted), std::string::npos) << listing;
  EXPECT_EQ(listing.find("v128"), std::string::npos) << listing;
}

TEST(OneLane, Arithmetic) {
  expect_listed(lane_0_of([](Function& f, auto a, auto b) { f.get(a), f.get(b), f.op("f32x4.add"); }),
                "local.get $a local.get $b f32.add");
  expect_listed(lane_0_of([](Function& f, auto a, auto b) { f.get(a), f.get(b), f.op("f64x2.mul"); }, Type::F64),
                "local.get $a local.get $b f64.mul");
}

TEST(OneLane, IntegersAndFloatsOfTheSameBits) {
  expect_listed(lane_0_of([](Function& f, auto a, auto) { f.get(a), f.i32_const(23), f.op("i32x4.shl"); }),
                "local.get $a i32.reinterpret_f32 i32.const 23 i32.shl f32.reinterpret_i32");
  // An operand below another one is turned where it is made.
  expect_listed(lane_0_of([](Function& f, auto a, auto b) { f.get(a), f.get(b), f.op("v128.and"); }),
                "local.get $a i32.reinterpret_f32 local.get $b i32.reinterpret_f32 i32.and f32.reinterpret_i32");
}

TEST(OneLane, AConditionIsOneOrAllOnes) {
  expect_listed(lane_0_of([](Function& f, auto a, auto b) {
                  f.get(a), f.get(b), f.get(a), f.get(b), f.op("f32x4.lt"), f.op("v128.bitselect");
                }),
                "f32.lt select");
  expect_listed(lane_0_of([](Function& f, auto a, auto b) { f.get(a), f.get(b), f.op("f32x4.lt"), f.op("f32x4.neg"); }),
                "f32.lt i32.const -1 i32.mul f32.reinterpret_i32 f32.neg");
}

TEST(OneLane, ALocalThatHolds32BitsAnd64) {
  const std::string listing = lane_0_of([](Function& f, auto a, auto) {
    const auto t = f.local<V128>("t");
    f.get(a), f.op("f64x2.promote_low_f32x4"), f.set(t), f.get(t), f.get(t), f.op("f64x2.add");
    f.op("f32x4.demote_f64x2_zero"), f.set(t), f.get(t);
  });
  expect_listed(listing, "f64.promote_f32 local.set");
  expect_listed(listing, "f64.add f32.demote_f64 local.set");
}

TEST(OneLane, ConstantsStandWhereTheyAreRead) {
  expect_listed(lane_0_of([](Function& f, auto a, auto) {
                  const auto half = f.local<V128>("half");
                  f.splat_const(0.5f), f.set(half), f.get(a), f.get(half), f.op("f32x4.mul");
                }),
                "local.get $a f32.const 0.5 f32.mul");
}

TEST(OneLane, TruncatesWithoutSaturatingInstructions) {
  const std::string listing = lane_0_of(
      [](Function& f, auto a, auto) { f.get(a), f.op("i32x4.trunc_sat_f32x4_s"), f.op("f32x4.convert_i32x4_s"); });
  expect_listed(listing, "i32.trunc_f64_s f32.convert_i32_s");
  EXPECT_EQ(listing.find("trunc_sat"), std::string::npos) << listing;
}

TEST(OneLane, OtherLanesAreRefused) {
  const auto refused = [](const std::string& listing) {
    EXPECT_NE(listing.find("has no form of one lane"), std::string::npos) << listing;
  };
  refused(lane_0_of([](Function& f, auto a, auto) { f.get(a), f.lane("f32x4.extract_lane", 1), f.op("f32x4.splat"); }));
  refused(lane_0_of([](Function& f, auto a, auto b) {
    f.get(a), f.get(b), f.shuffle({4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15});
  }));
  refused(lane_0_of([](Function& f, auto a, auto b) { f.get(a), f.get(b), f.get(a), f.op("f32x4.relaxed_madd"); }));
}

}  // namespace
}  // namespace trireme::wasm
