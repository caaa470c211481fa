// f4e2m1, two columns a byte: what is stored and read, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "layout/elements.hpp"
#include "passes/passes.hpp"
#include "plan/plan_for_test.hpp"
#include "same_bits_for_test.hpp"
#include "support/float_types.hpp"

namespace trireme {
namespace {

// Numbers around every border of the type, and what has no border.
std::vector<double> corners() {
  std::vector<double> values = {0, 0x1p-149, 0x1p-126, 1e-30, 7, 1e30, std::numeric_limits<double>::infinity()};
  for (int quarters = 1; quarters <= 28; ++quarters)
    for (float side : {-1.0f, 0.0f, 1.0f}) {
      const float at = 0.25f * static_cast<float>(quarters);
      values.push_back(side == 0 ? at : std::nextafter(at, at + side));
    }
  for (std::size_t k = values.size(); k-- > 0;) values.push_back(-values[k]);
  values.push_back(std::nan(""));
  values.push_back(-std::nan(""));
  return values;
}

// The program on the reference and on every device, with the corners as x; `check` sees each.
template <typename Check>
void on_corners(const std::string& text, const std::string& types, Check&& check) {
  const std::vector<double> values = corners();
  const std::int64_t columns = 2 * static_cast<std::int64_t>(values.size());
  for (const DeviceEntry& device : devices()) {
    if (!device.missing().empty()) continue;
    Prepared prepared = prepare_problem(parse_problem(fmt::format("p 3x{} {}", columns, types)).value(), text).value();
    const Array x = prepared.buffers.operands[0].array;
    for (std::int64_t r = 0; r < 3; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        set_value_at(x, r, c, values[static_cast<std::size_t>(c + c / (columns / 2) + r) % values.size()]);
    const Problem2d problem = prepared.view();
    auto made = device.compile(prepared.program, facts_of(prepared.program, problem));
    ASSERT_TRUE(made) << device.name << ": " << made.error().message;
    made.value()->run(problem, {.threads = 2}).value();
    for (std::int64_t r = 0; r < 3; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        check(x, prepared.buffers.results[0].array, r, c, device.name + " " + std::to_string(value_at(x, r, c)));
  }
}

TEST(PackedTypes, AreStoredAsTheirTypeSays) {
  for (const char* types : {"x=f32 y=f4e2m1", "x=f64 y=f4e2m1"})
    on_corners("p(x[i,j]) -> (y[i,j])\n  y = x\n", types,
               [](const Array& x, const Array& y, std::int64_t r, std::int64_t c, const std::string& what) {
                 ASSERT_EQ(bits_at(y, r, c), round_to_bits(Type::F4E2M1, value_at(x, r, c))) << what;
               });
}

TEST(PackedTypes, AreRoundedToAsTheirTypeSays) {
  for (const char* types : {"x=f32 y=f32 z=f4e2m1", "x=f64 y=f64 z=f4e2m1"})
    on_corners("p(x[i,j]) -> (y[i,j], z[i,j])\n  y = cast(x, z)\n  z = x\n", types,
               [](const Array& x, const Array& y, std::int64_t r, std::int64_t c, const std::string& what) {
                 const double wanted = through_type(Type::F4E2M1, value_at(x, r, c)), got = value_at(y, r, c);
                 ASSERT_EQ(std::signbit(got), std::signbit(wanted)) << what;
                 ASSERT_EQ(got, wanted) << what;
               });
}

TEST(PackedTypes, AreReadAsTheirTypeSays) {
  for (const char* types : {"x=f4e2m1 y=f32", "x=f4e2m1 y=f64"})
    on_corners("p(x[i,j]) -> (y[i,j])\n  y = x\n", types,
               [](const Array& x, const Array& y, std::int64_t r, std::int64_t c, const std::string& what) {
                 ASSERT_EQ(std::signbit(value_at(y, r, c)), std::signbit(value_at(x, r, c))) << what;
                 ASSERT_EQ(value_at(y, r, c), value_at(x, r, c)) << what;
               });
}

// The even column lies in the low half.
TEST(PackedTypes, TwoColumnsShareAByte) {
  Prepared prepared =
      prepare_problem(parse_problem("p 1x4 x=f32 y=f4e2m1").value(), "p(x[i,j]) -> (y[i,j])\n  y = j + 1\n").value();
  run_reference(prepared.program, prepared.view()).value();
  ASSERT_EQ(prepared.buffers.results[0].memory.size(), 2u);
  EXPECT_EQ(static_cast<int>(prepared.buffers.results[0].memory[0]), 0x42);
  EXPECT_EQ(static_cast<int>(prepared.buffers.results[0].memory[1]), 0x65);
}

// What the reference stores element by element, from a program that knows f4e2m1 and not its bytes.
TEST(PackedTypes, PackingChangesNoResult) {
  const std::string text =
      "p(x[i,j], w[j]) -> (y[i,j], z[i,j])\n  y = x * w + rotate(x, 3)\n  z = cast(y, x) + amax(x, j / 4)\n";
  Prepared packed = prepare_problem(parse_problem("p 7x258 x=f4e2m1 z=f32").value(), text).value();
  Prepared plain = prepare_problem(parse_problem("p 7x258 x=f4e2m1 z=f32").value(), text).value();
  run_reference(packed.program, packed.view()).value();
  const std::vector<Array> elements = plain.elements();
  Problem2d problem = plain.view();
  problem.arrays = elements;
  run_reference(expand(simplify(plain.bound)).value(), problem).value();
  EXPECT_EQ(digest_of(packed), digest_of(plain));
}

TEST(PackedTypes, GiveTheSameBitsWhereverRowsAreCut) {
  const std::string text =
      "p(x[i,j], w[j], t[i]) -> (q[i,j], s[i, j / 16], y[i,j])\n  s = amax(abs(x * w), j / 16)\n  q = x / s\n"
      "  y = rotate(x, n / 2) + sum(select(j == t, x, 0))\n";
  for (const char* line : {"p 37x32 q=f4e2m1 t=i32", "p 5x258 x=bf16 w=f4e2m1 q=f4e2m1 t=i32",
                           "p 9x1030 x=f4e2m1 q=f4e2m1 t=i32 y=f64", "p 3x4x514 x=f4e2m1+2:-600 q=f4e2m1+4:1000 t=i32"})
    for (std::int64_t chunk : {0, 1, 3}) expect_same_bits(text, line, {.threads = 3, .chunk_rows = chunk});
}

std::string refusal(const std::string& text, const std::string& line) {
  Result<Prepared> made = prepare_problem(parse_problem(line).value(), text);
  return made ? "" : made.error().message;
}

TEST(PackedTypes, AreRefusedWhereColumnsAreNoPairs) {
  const std::string text = "p(x[i,j], t[i]) -> (y[i,j], r[i], c[j])\n  y = x + t\n  r = sum(x)\n  c = colsum(x)\n";
  EXPECT_EQ(refusal(text, "p 3x7 x=f4e2m1"), "p: 'x' is f4e2m1, two columns a byte: 7 columns are an odd number");
  EXPECT_EQ(refusal(text, "p 3x8 t=f4e2m1"),
            "p: 't' is f4e2m1, two columns a byte: it has not one value for each column j");
  EXPECT_EQ(refusal(text, "p 3x8 r=f4e2m1"),
            "p: 'r' is f4e2m1, two columns a byte: it has not one value for each column j");
  EXPECT_EQ(refusal(text, "p 3x8 c=f4e2m1"),
            "p: 'c' is f4e2m1, two columns a byte: results that are sums over rows take other types");
  EXPECT_EQ(refusal("p(x[i,j], k[i]) -> (y[k, j])\n  y = x\n", "p 3x8 y=f4e2m1"),
            "p: 'y' is f4e2m1, two columns a byte: results whose rows are picked take other types");
  EXPECT_EQ(refusal(text, "p 3x16777218 x=f4e2m1"),
            "p: 'x' is f4e2m1, two columns a byte: there may be up to 2^24 columns, not 16777218");
  EXPECT_EQ(refusal(text, "p 3x2x3 axes=2 x=f4e2m1"), "'x': f4e2m1 takes two columns a byte, and the last axis is odd");
  EXPECT_EQ(refusal(text, "p 3x8 x=f4e2m1+1"), "'x': f4e2m1 takes two columns a byte, and the offset is odd");
  EXPECT_EQ(refusal(text, "p 3x8 x=f4e2m1:9"),
            "'x': f4e2m1 takes two columns a byte: rows begin with a byte, and their strides are even");
  EXPECT_EQ(refusal(text, "p 1x8 x=f4e2m1:9"), "");  // one row has no stride
  EXPECT_EQ(refusal(text, "p 3x8 x=f4e2m1:1,3"),
            "'x': f4e2m1 takes two columns a byte: columns lie side by side, with a stride of 1");
}

// What a line leaves open has the first element operand's type, where it can.
TEST(PackedTypes, StandForArraysOfColumnsAlone) {
  const std::string text = "p(x[i,j], t[i], w[j]) -> (y[i,j], r[i])\n  y = x * w + t\n  r = sum(x)\n";
  const Prepared made = prepare_problem(parse_problem("p 3x8 x=f4e2m1").value(), text).value();
  EXPECT_EQ(made.bound.operands[1].type, Type::F32);
  EXPECT_EQ(made.bound.operands[2].type, Type::F4E2M1);
  EXPECT_EQ(made.bound.results[0].type, Type::F4E2M1);
  EXPECT_EQ(made.bound.results[1].type, Type::F32);
}

TEST(PackedTypes, ArePlannedByElements) {
  const RowProgram program = RowProgram::parse("p(x[i,j]) -> (y[i,j])\n  y = x\n").value();
  const PlanOptions options{.program = program, .shape = {3, 8}, .types = {{"x", Type::F32}, {"y", Type::F4E2M1}}};
  const Plan plan = Plan::create(cpu(), options).value();
  Floats x = sampled(24);
  std::vector<unsigned char> y(3 * 6, 0xAA);
  Args args = plan.args();
  args["x"] = view(x);
  auto try_y = [&](Dims shape, Dims strides, std::size_t bytes) -> std::string {
    args["y"] = {y.data(), Type::F4E2M1, shape, strides, bytes};
    const Status status = plan.check(args);
    if (status) plan.run(args).value();
    return status ? "" : status.error().message.substr(0, status.error().message.find(';'));
  };
  EXPECT_EQ(try_y({3, 8}, {}, 12), "");
  EXPECT_EQ(try_y({3, 8}, {}, 11), "y: 12 bytes are needed, and the buffer has 11");
  EXPECT_EQ(try_y({3, 4}, {}, 12), "y: the view has the shape 3x4, expected 3x8");
  EXPECT_EQ(try_y({3, 8}, {9, 1}, 18),
            "y: f4e2m1 takes two columns a byte: rows begin with a byte, and their strides are even");
  EXPECT_EQ(try_y({3, 8}, {8, 2}, 18),
            "y: f4e2m1 takes two columns a byte: columns lie side by side, with a stride of 1");
  std::fill(y.begin(), y.end(), 0xAA);
  EXPECT_EQ(try_y({3, 8}, {12, 1}, 18), "");
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 8; ++c)
      EXPECT_EQ(y[r * 6 + c / 2] >> 4 * (c % 2) & 15,
                static_cast<int>(round_to_bits(Type::F4E2M1, x[static_cast<std::size_t>(r * 8 + c)])));
  EXPECT_EQ(y[4], 0xAA);
  PlanOptions in_place = options;
  in_place.types["x"] = Type::F4E2M1;
  in_place.in_place = {{"y", "x"}};
  EXPECT_EQ(Plan::create(cpu(), in_place).error().code, Code::Unsupported);
  PlanOptions odd = options;
  odd.shape = {3, 2, 3}, odd.axes = last(2);
  EXPECT_EQ(Plan::create(cpu(), odd).error().code, Code::InvalidArgument);
}

}  // namespace
}  // namespace trireme
