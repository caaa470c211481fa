// random(seed, k), also of a part of a whole, and cast_stochastic: the numbers, written out by hand, and the same bits
// on every device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "language/parse.hpp"
#include "language/print.hpp"
#include "passes/passes.hpp"
#include "same_bits_for_test.hpp"
#include "support/float_types.hpp"

namespace trireme {
namespace {

// Philox as its paper writes it, in 64-bit arithmetic and one word at a time.
double wanted(std::uint64_t seed, std::uint64_t i, std::uint64_t j, std::uint64_t stream) {
  std::uint64_t r0 = j / 4, l0 = i & 0xFFFFFFFF, r1 = i >> 32, l1 = stream;
  std::uint64_t k0 = seed & 0xFFFFFFFF, k1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53 * r0, b = 0xCD9E8D57 * r1;
    r0 = (b >> 32) ^ l0 ^ k0, l0 = b & 0xFFFFFFFF;
    r1 = (a >> 32) ^ l1 ^ k1, l1 = a & 0xFFFFFFFF;
    k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF;
  }
  const std::uint64_t words[] = {r0, l0, r1, l1};
  return static_cast<double>(words[j % 4] >> 9) / 8388608.0;
}

// The values of the program's last result on a device, from a seed.
std::vector<double> run_on(const DeviceEntry& device, const std::string& text, const std::string& line,
                           std::int64_t seed) {
  Prepared prepared = prepare_problem(parse_problem(line).value(), text).value();
  const Problem2d problem = prepared.view();
  for (std::size_t k = 0; k < prepared.program.operands.size(); ++k)
    if (prepared.program.operands[k].name == "seed") std::memcpy(problem.arrays[k].data, &seed, sizeof seed);
  std::unique_ptr<Executable> made = device.compile(prepared.program, facts_of(prepared.program, problem)).value();
  made->run(problem, {.threads = 2}).value();
  const Buffer& last = prepared.buffers.results.back();
  std::vector<double> values;
  for (std::int64_t r = 0; r < last.row_extent; ++r)
    for (std::int64_t c = 0; c < last.column_extent; ++c)
      values.push_back(load_f64(last.array.type, last.array.entry(r, c)));
  return values;
}

TEST(Randomness, IsPhiloxOnEveryDevice) {
  const std::string text = "p(x[i,j], seed[]) -> (y[i,j])\n  y = random(seed, 4294967295)\n";
  const std::int64_t seed = -0x123456789abcdef;
  for (const char* types : {"x=f32", "x=f64"})
    for (std::int64_t columns : {1, 3, 5, 33, 260})
      for (const DeviceEntry* device : devices_here(30)) {
        const std::vector<double> got = run_on(*device, text, fmt::format("p 3x{} {}", columns, types), seed);
        for (std::int64_t i = 0; i < 3; ++i)
          for (std::int64_t j = 0; j < columns; ++j)
            ASSERT_EQ(got[i * columns + j], wanted(static_cast<std::uint64_t>(seed), i, j, 4294967295))
                << device->name << ' ' << types << ' ' << i << ',' << j;
      }
}

// A part draws what the whole draws there: rows beyond 32 bits, columns that begin a block of four numbers and that do
// not.
TEST(Randomness, CountsFromAFirstRowAndColumn) {
  const std::pair<std::int64_t, std::int64_t> places[] = {
      {0, 4}, {1, 0}, {2, 1}, {4294967294, 258}, {std::int64_t{1} << 53, 1073741824}};
  const std::int64_t seed = 0x123456789abcdef;
  for (const auto& [row, column] : places)
    for (const char* type : {"f32", "f64"})
      for (std::int64_t columns : {3, 33, 512}) {
        const std::string text =
            fmt::format("p(x[i,j], seed[], a) -> (y[i,j])\n  y = random(seed, 6, a, {} + 0 * a)\n", column);
        const std::string line = fmt::format("p 3x{} x={} a={}", columns, type, row);
        for (const DeviceEntry* device : devices_here(30)) {
          const std::vector<double> got = run_on(*device, text, line, seed);
          for (std::int64_t i = 0; i < 3; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
              ASSERT_EQ(got[i * columns + j], wanted(static_cast<std::uint64_t>(seed), row + i, column + j, 6))
                  << device->name << ' ' << line << ' ' << i << ',' << j;
        }
      }
}

// In sums, folds, rotations, at picked columns, beside column sums, in conditions of rows.
TEST(Randomness, SameBitsOnEveryDevice) {
  const std::string programs[] = {
      "p(x[i,j], seed[]) -> (y[i,j], s[i], c[j])\n  r = random(seed, 0)\n  s = sum(r * x)\n  y = x * r + s\n"
      "  c = colsum(select(r < 0.25, x, 0))\n",
      "p(x[i,j], seed[]) -> (y[i,j], v[i])\n  v = variance(random(seed, 1))\n  y = softmax(x + random(seed, 2)) * v\n",
      "p(x[i,j], seed[], at[i]) -> (y[i,j], t[i])\n  t = sum(select(j == at, rotate(random(seed, 3), 2), 0))\n"
      "  y = rotate(random(seed, 3) * x, 5) + t\n",
      "p(x[i,j], seed[]) -> (y[i,j], e[i / 2, j % 3], a[])\n  y = cast_stochastic(x, y, random(seed, 9))\n"
      "  e = colsum(y * random(seed, 9))\n  a = colsum(random(seed, 9))\n",
      "p(x[i,j], seed[], at[i]) -> (y[i,j], t[i], e[i / 2, j % 3])\n  r = random(seed, 3, 7, 4)\n"
      "  t = sum(select(j == at, r, 0)) + variance(random(seed, 3, 4294967294, 5) * x)\n"
      "  y = rotate(r * x, 3) + softmax(random(seed, 3, 7, 6) + r)\n  e = colsum(r * random(seed, 3))\n",
  };
  for (const std::string& text : programs)
    for (const char* columns : {"6", "31", "257", "1024", "5000"})
      for (const char* type : {"x=f32", "x=bf16", "x=f64 y=f8e4m3", "x=f16 y=i8"}) {
        const std::string at = text.find("at[i]") == text.npos ? "" : " at=i32";
        expect_same_bits(text, fmt::format("p 5x{} {}{}", columns, type, at), {.threads = 2});
      }
}

TEST(Randomness, BackwardsDrawAgain) {
  const Program forward = parse(
                              "dropout(x[i,j], seed[], p = 0.5) -> (y[i,j])\n"
                              "  y = select(random(seed, 0) < p, 0, x * (1 / (1 - p)))\n")
                              .value();
  EXPECT_EQ(print(differentiate(forward).value()),
            "dropout_backward(dy[i,j] = 0, seed[], p = 0.5) -> (dx[i,j])\n"
            "    dx = select(random(seed, 0) < p, 0, dy * (1 / (1 - p)))\n");
  // Nothing flows into a random number, nor out of a seed.
  const Program scaled = parse("p(x[i,j], seed[]) -> (y[i,j])\n  y = exp(random(seed, 5)) * x\n").value();
  EXPECT_EQ(print(differentiate(scaled).value()),
            "p_backward(dy[i,j] = 0, seed[]) -> (dx[i,j])\n    dx = dy * exp(random(seed, 5))\n");
}

// Every value goes to one of its neighbours, and their mean is what it was.
TEST(Randomness, StochasticCastsHaveTheRightMean) {
  const DeviceEntry& reference = devices()[0];
  for (const char* type : {"bf16", "f16", "f8e4m3", "f8e5m2", "i8"})
    for (double value : {0.3, -1.7, 5.2, 0.001, -100.6}) {
      const std::string text =
          fmt::format("p(x[i,j], seed[]) -> (y[i,j])\n  y = cast_stochastic({} + 0 * x, y, random(seed, 0))\n", value);
      const std::vector<double> got = run_on(reference, text, fmt::format("p 16x4096 x=f32 y={}", type), 7);
      double low = got[0], high = got[0], mean = 0;
      for (double each : got) low = std::min(low, each), high = std::max(high, each), mean += each / 65536;
      const double f32 = static_cast<float>(value);
      ASSERT_LE(low, f32) << type << ' ' << value;
      ASSERT_GE(high, f32) << type << ' ' << value;
      for (double each : got) ASSERT_TRUE(each == low || each == high) << type << ' ' << value << ' ' << each;
      EXPECT_NEAR(mean, f32, 5 * (high - low) / 2 / 256) << type << ' ' << value;  // five standard deviations
      const Type stored = type_named(type).value();
      for (double each : {low, high}) EXPECT_EQ(through_type(stored, each), each) << type;
      // Neighbours: nothing of the type lies between.
      const double middle = low + (high - low) / 2;
      const double nearest = through_type(stored, middle);
      EXPECT_TRUE(nearest == low || nearest == high) << type << ' ' << value;
    }
}

TEST(Randomness, StochasticCastsKeepWhatIsExact) {
  const DeviceEntry& reference = devices()[0];
  for (const char* expression : {"inf", "-inf", "nan", "0", "-0.0", "448", "-0.5", "1e30"}) {
    const std::string head = "p(x[i,j], seed[]) -> (y[i,j])\n  y = ";
    const std::string value = fmt::format("select(x == x, {}, x)", expression);
    const auto cast = run_on(reference, head + "cast(" + value + ", y)\n", "p 2x9 x=f32 y=f8e4m3", 3);
    const auto chance =
        run_on(reference, head + "cast_stochastic(" + value + ", y, random(seed, 0))\n", "p 2x9 x=f32 y=f8e4m3", 3);
    for (std::size_t k = 0; k < cast.size(); ++k)
      EXPECT_TRUE(cast[k] == chance[k] || (std::isnan(cast[k]) && std::isnan(chance[k]))) << expression;
  }
}

}  // namespace
}  // namespace trireme
