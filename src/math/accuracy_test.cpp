// Every function against its oracle: 2^22 spread inputs and the edges in f32, all 2^32 with LONG=1; samples in f64.
// The oracle of f32 is libm in double: its error of one or two ulp is 2^-28 of an f32 ulp, below the last digit of any
// bound. That of f64 is libm in long double, 2^-10 of an f64 ulp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <mutex>

#include "math/evaluate.hpp"
#include "math/functions.hpp"
#include "support/every_f32_for_test.hpp"

namespace trireme {
namespace {

template <typename T>
using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;

double exact(const Function& f, const double* x) { return f.oracle.f32(x); }
long double exact(const Function& f, const long double* x) { return f.oracle.f64(x); }

// Below this results are judged absolutely; beyond `largest` they are infinite.
template <typename T>
constexpr Wide<T> threshold() {
  return sizeof(T) == 4 ? Wide<T>(0x1p-125) : Wide<T>(0x1p-1021L);
}

template <typename T>
Wide<T> ulp(Wide<T> y) {
  int exponent;
  std::frexp(y, &exponent);
  return std::ldexp(Wide<T>(1), exponent - std::numeric_limits<T>::digits);
}

// The error of `got` in the function's unit; infinite where one is NaN and the other not.
template <typename T>
double error_of(const Function& f, Wide<T> x, T got, Wide<T> want) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : wrong;
  const Wide<T> beyond = std::ldexp(Wide<T>(1), std::numeric_limits<T>::max_exponent);
  auto finite = [&](Wide<T> y) { return std::fmin(std::fmax(y, -beyond), beyond); };
  Wide<T> difference = std::fabs(finite(got) - finite(want)), size = std::fabs(finite(want));
  if (difference == 0) return 0;
  if (size < threshold<T>())
    return difference <= threshold<T>() && !(std::signbit(got) != std::signbit(want) && got != 0) ? 0 : wrong;
  switch (f.unit) {
    case ErrorUnit::Ulp: return double(difference / ulp<T>(size));
    case ErrorUnit::Argument: return double(difference / std::fabs(x));
    case ErrorUnit::One: return double(difference);
  }
  return wrong;
}

template <typename T>
struct Worst {
  double error = 0;
  T x = 0, got = 0;
  Wide<T> want = 0;
  void take(const Worst& other) {
    if (other.error > error) *this = other;
  }
};

// The largest error over input(first) .. input(last - 1).
template <typename T, typename Input>
Worst<T> worst_over(const Function& f, const Expanded& graph, std::uint64_t first, std::uint64_t last, Input input) {
  constexpr std::size_t block = Evaluator<T>::block;
  Evaluator<T> evaluator(graph.program, graph.root);
  std::vector<T> xs(block), low(block, T(-1.5)), high(block, T(2.25)), ys(block);
  const T* args[] = {xs.data(), low.data(), high.data()};
  Worst<T> worst;
  for (std::uint64_t start = first; start < last; start += block) {
    std::size_t count = std::min<std::uint64_t>(block, last - start);
    for (std::size_t k = 0; k < count; ++k) xs[k] = input(start + k);
    evaluator.run(args, std::span(ys.data(), count));
    for (std::size_t k = 0; k < count; ++k) {
      Wide<T> x[] = {xs[k], Wide<T>(-1.5), Wide<T>(2.25)};
      Wide<T> want = exact(f, x);
      if (ys[k] == static_cast<T>(want)) continue;  // correctly rounded
      worst.take({error_of<T>(f, xs[k], ys[k], want), xs[k], ys[k], want});
    }
  }
  return worst;
}

bool long_run() { return std::getenv("LONG") != nullptr; }

template <typename T>
void expect_within(const Function& f, const Worst<T>& worst, Type compute) {
  const Accuracy& accuracy = f.accuracy(compute);
  double shown = f.unit == ErrorUnit::Ulp ? worst.error : std::log2(worst.error);
  if (long_run() || std::getenv("SHOW"))
    std::printf("%-10s %s largest error %s%.4f at %a\n", f.name.data(), name(compute).data(),
                f.unit == ErrorUnit::Ulp ? "" : "2^", shown, double(worst.x));
  EXPECT_LE(worst.error, accuracy.bound) << f.name << " " << name(compute) << " at " << std::hexfloat << worst.x
                                         << " got " << worst.got << " want " << double(worst.want);
  EXPECT_LE(worst.error, accuracy.measured * 1.0001)
      << f.name << " " << name(compute) << ": the record's largest error, at " << std::hexfloat << worst.x;
}

class AgainstOracle : public testing::TestWithParam<std::size_t> {};

TEST_P(AgainstOracle, f32_bound) {
  const Function& f = functions()[GetParam()];
  Expanded graph = expanded(f, Type::F32);
  EveryF32 numbers{long_run() ? 1u : 1021u};
  Worst<float> worst;
  std::mutex mutex;
  in_parts(numbers.count(), [&](std::uint64_t first, std::uint64_t last) {
    Worst<float> mine = worst_over<float>(f, graph, first, last, numbers);
    std::lock_guard lock(mutex);
    worst.take(mine);
  });
  // Both sides of every power of two and of every clamp's neighbourhood.
  auto edges = [&](std::uint64_t k) {
    std::uint32_t binade = static_cast<std::uint32_t>(k / 64) << 22, offset = static_cast<std::uint32_t>(k % 64) - 32;
    return std::bit_cast<float>(binade + offset);
  };
  worst.take(worst_over<float>(f, graph, 0, 64 * 1024, edges));
  expect_within(f, worst, Type::F32);
}

TEST_P(AgainstOracle, f64_bound) {
  const Function& f = functions()[GetParam()];
  Expanded graph = expanded(f, Type::F64);
  std::uint64_t count = std::uint64_t{1} << (long_run() ? 24 : 17);
  // Half over all bits, half where functions turn: +-2^-30 .. 2^10.
  auto input = [&](std::uint64_t k) {
    std::uint64_t mixed = k * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 29;
    mixed *= 0xBF58476D1CE4E5B9u;
    mixed ^= mixed >> 32;
    if (k % 8 == 0) return std::bit_cast<double>(mixed);
    std::uint64_t exponent = 1023 - 30 + (mixed >> 52) % 41;
    if (k % 2) exponent = 1023 - 4 + (mixed >> 52) % 11;
    return std::bit_cast<double>((mixed & 0x800fffffffffffffu) | exponent << 52);
  };
  Worst<double> worst = worst_over<double>(f, graph, 0, count, input);
  auto edges = [&](std::uint64_t k) { return std::bit_cast<double>(((k / 8) << 51) + (k % 8) - 4); };
  worst.take(worst_over<double>(f, graph, 0, 8 * 8192, edges));
  expect_within(f, worst, Type::F64);
}

INSTANTIATE_TEST_SUITE_P(Table, AgainstOracle, testing::Range<std::size_t>(0, functions().size()),
                         [](const auto& info) { return std::string(functions()[info.param].name); });

}  // namespace
}  // namespace trireme
