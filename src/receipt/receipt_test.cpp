#include "receipt/receipt.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "devices/device.hpp"
#include "receipt/check.hpp"
#include "receipt/from_views.hpp"
#include "receipt/report.hpp"
#include "trireme/device.hpp"

namespace trireme::receipts {
namespace {

constexpr std::int64_t rows = 1500, columns = 8;

// y = x * by, of which a receipt is made, its hash being `hash`.
struct Scaled {
  std::vector<float> x = std::vector<float>(rows * columns), y = x;
  Scaled() {
    std::iota(x.begin(), x.end(), -100.0f);
    for (std::size_t k = 0; k < x.size(); ++k) y[k] = x[k] * 3;
  }
  View view(const std::vector<float>& values) const { return {.data = values.data(), .shape = {rows, columns}}; }
  Receipt receipt(Hash hash = Hash::Xxh3) const {
    return receipt_of("scaled(x[i,j], by = 3) -> (y[i,j])\n y = x * by\n", {{"x", view(x)}, {"y", view(y)}},
                      {.hash = hash})
        .value();
  }
  CheckReport check(const Receipt& receipt, const CheckOptions& options = {}) const {
    const auto readers = readers_of(receipt, {{"x", view(x)}}).value();
    return check_receipt(receipt, readers, Device::named("reference").value().entry(), options).value();
  }
};

TEST(Receipts, PrintAndParseAreInverse) {
  for (const Hash hash : {Hash::Xxh3, Hash::Sha256}) {
    Receipt receipt = Scaled().receipt(hash);
    const std::string text = print(receipt);
    EXPECT_EQ(print(parse_receipt(text).value()), text);
    EXPECT_EQ(signed_form(receipt), text);
    receipt.signature = Signature{std::string(64, 'a'), std::string(128, 'b')};
    EXPECT_EQ(signed_form(receipt), text);
    EXPECT_EQ(static_cast<bool>(parse_receipt(print(receipt))), hash == Hash::Sha256);
  }
}

TEST(Receipts, SignaturesOfAnotherFormAreRefused) {
  Receipt receipt = Scaled().receipt(Hash::Sha256);
  for (const Signature& wrong :
       {Signature{std::string(63, 'a'), std::string(128, 'b')}, Signature{std::string(64, 'A'), std::string(128, 'b')},
        Signature{std::string(64, 'a'), std::string(127, 'b')}}) {
    receipt.signature = wrong;
    EXPECT_FALSE(parse_receipt(print(receipt)));
  }
}

TEST(Receipts, OthersVersionsAreRefused) {
  Receipt receipt = Scaled().receipt();
  ++receipt.contract;
  EXPECT_EQ(layout_of(parse_receipt(print(receipt)).value()).error().code, Code::Unsupported);
}

// A bound text means what it says on every device, but the contract has no word for it.
TEST(Receipts, BoundProgramsAreRefused) {
  const Scaled scaled;
  const std::string bound = "scaled(x[i,j]: f32) -> (y[i,j]: f32) in f32\n    y = round_to(x, bf16) * 3\n";
  const auto expect_refused = [](const Error& error) {
    EXPECT_EQ(error.code, Code::Unsupported);
    EXPECT_NE(error.message.find("'scaled' is bound ('in f32' behind its results)"), error.message.npos)
        << error.message;
  };
  expect_refused(receipt_of(bound, {{"x", scaled.view(scaled.x)}, {"y", scaled.view(scaled.y)}}, {}).error());
  Receipt receipt = scaled.receipt();
  receipt.text = bound, receipt.constants.clear();
  expect_refused(parse_receipt(print(receipt)).error());
  expect_refused(layout_of(receipt).error());
}

TEST(Receipts, ResultsAreComputedAgain) {
  Scaled scaled;
  Receipt receipt = scaled.receipt();
  EXPECT_TRUE(scaled.check(receipt).passed());
  const CheckReport some = scaled.check(receipt, {.rows = {{1001, 1002}}});
  EXPECT_TRUE(some.passed());
  EXPECT_EQ(some.first_row, 1000);
  EXPECT_EQ(some.last_row, 1002);
  receipt.constants["by"] = 4;  // another program, so to say
  EXPECT_FALSE(scaled.check(receipt).passed());
  scaled.y[7 * columns] += 1;  // a result that nobody computed
  const CheckReport found = scaled.check(scaled.receipt());
  ASSERT_EQ(found.results.size(), 1u);
  EXPECT_EQ(found.results[0].first_row, 6);
  EXPECT_EQ(json::canonical({report_of(found, "reference")}),
            R"({"device":"reference","given":[],"operands":[{"name":"x","state":"same"}],)"
            R"("results":[{"name":"y","rows":[6,8],"state":"different"}],"rows":[0,1500],"verdict":"fails"})");
  scaled.x[0] += 1;
  const CheckReport operands = scaled.check(receipt);
  EXPECT_EQ(operands.operands[0].state, CheckedArray::State::Different);
  EXPECT_TRUE(operands.results.empty());
}

TEST(Receipts, ArraysAreThoseOfTheProgram) {
  const Scaled scaled;
  const std::string text = "scaled(x[i,j], by = 3) -> (y[i,j])\n y = x * by\n";
  const View x = scaled.view(scaled.x), y = scaled.view(scaled.y);
  EXPECT_FALSE(receipt_of(text, {{"x", x}}, {}));
  EXPECT_FALSE(receipt_of(text, {{"y", y}}, {}));
  EXPECT_FALSE(receipt_of(text, {{"x", x}, {"y", y}, {"z", y}}, {}));
  EXPECT_FALSE(receipt_of(text, {{"x", x}, {"y", View{.data = scaled.y.data(), .shape = {columns, rows}}}}, {}));
  EXPECT_FALSE(readers_of(scaled.receipt(), {{"x", View{.data = scaled.x.data(), .shape = {rows}}}}));
  EXPECT_FALSE(readers_of(scaled.receipt(),
                          {{"x", View{.data = scaled.x.data(), .type = Type::I32, .shape = {rows, columns}}}}));
}

}  // namespace
}  // namespace trireme::receipts
