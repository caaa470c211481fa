// Limits, order, derivatives and costs of the functions; accuracy_test.cpp has their errors.
#include "math/functions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "math/evaluate.hpp"

namespace trireme {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
T value_of(const Expanded& graph, double x, double low = -1.5, double high = 2.25) {
  T args[] = {static_cast<T>(x), static_cast<T>(low), static_cast<T>(high)}, out;
  const T* pointers[] = {&args[0], &args[1], &args[2]};
  Evaluator<T>(graph.program, graph.root).run(pointers, std::span(&out, 1));
  return out;
}

template <typename T>
bool same(T a, T b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

struct Limit {
  std::string_view name;
  double x, y;
};
constexpr Limit limits[] = {
    {"exp", -inf, 0.0},
    {"exp", inf, inf},
    {"exp", nan, nan},
    {"exp", -0.0, 1},
    {"exp", 0.0, 1},
    {"exp", -1e30, 0.0},
    {"exp", 1e30, inf},
    {"exp", -750, 0.0},
    {"expm1", -inf, -1},
    {"expm1", inf, inf},
    {"expm1", nan, nan},
    {"expm1", -0.0, -0.0},
    {"expm1", 0.0, 0.0},
    {"expm1", 1e30, inf},
    {"expm1", -1e30, -1},
    {"expm1", 1e-30, 1e-30},
    {"log", -inf, nan},
    {"log", inf, inf},
    {"log", nan, nan},
    {"log", -0.0, -inf},
    {"log", 0.0, -inf},
    {"log", 1, 0.0},
    {"log", -1, nan},
    {"log", -1e-40, nan},
    {"log1p", -inf, nan},
    {"log1p", inf, inf},
    {"log1p", nan, nan},
    {"log1p", -0.0, -0.0},
    {"log1p", 0.0, 0.0},
    {"log1p", -1, -inf},
    {"log1p", -1.5, nan},
    {"log1p", -1e-30, -1e-30},
    {"tanh", -inf, -1},
    {"tanh", inf, 1},
    {"tanh", nan, nan},
    {"tanh", -0.0, -0.0},
    {"tanh", 0.0, 0.0},
    {"tanh", 1e-30, 1e-30},
    {"tanh", -1e30, -1},
    {"tanh", 40, 1},
    {"sigmoid", -inf, 0.0},
    {"sigmoid", inf, 1},
    {"sigmoid", nan, nan},
    {"sigmoid", -0.0, 0.5},
    {"sigmoid", 0.0, 0.5},
    {"sigmoid", -1e30, 0.0},
    {"sigmoid", 1e30, 1},
    {"sigmoid", -750, 0.0},
    {"erf", -inf, -1},
    {"erf", inf, 1},
    {"erf", nan, nan},
    {"erf", -0.0, -0.0},
    {"erf", 0.0, 0.0},
    {"erf", 6, 1},
    {"erf", -1e30, -1},
    {"rsqrt", 0.0, inf},
    {"rsqrt", inf, 0.0},
    {"rsqrt", -1, nan},
    {"rsqrt", nan, nan},
    {"rsqrt", 4, 0.5},
    {"silu", -inf, -0.0},
    {"silu", inf, inf},
    {"silu", nan, nan},
    {"silu", 0.0, 0.0},
    {"silu", -0.0, -0.0},
    {"silu", -1e30, -0.0},
    {"silu", 1e30, 1e30},
    {"gelu", inf, inf},
    {"gelu", nan, nan},
    {"gelu", 0.0, 0.0},
    {"gelu", 1e30, 1e30},
    {"gelu_tanh", -inf, -0.0},
    {"gelu_tanh", inf, inf},
    {"gelu_tanh", nan, nan},
    {"gelu_tanh", 0.0, 0.0},
    {"gelu_tanh", -0.0, -0.0},
    {"gelu_tanh", 1e30, 1e30},
    {"gelu_tanh", -1e30, -0.0},
    {"gelu_slope", nan, nan},
    {"gelu_slope", inf, 1},
    {"gelu_slope", 0.0, 0.5},
    {"gelu_slope", 1e30, 1},
    {"relu", -1, 0.0},
    {"relu", nan, nan},
    {"relu", -inf, 0.0},
    {"relu", inf, inf},
    {"relu", -0.0, 0.0},
    {"softplus", -inf, 0.0},
    {"softplus", inf, inf},
    {"softplus", nan, nan},
    {"softplus", -1e30, 0.0},
    {"softplus", 1e30, 1e30},
    {"square", -inf, inf},
    {"square", nan, nan},
    {"sign", -0.0, -0.0},
    {"sign", 0.0, 0.0},
    {"sign", nan, nan},
    {"sign", -inf, -1},
    {"sign", 1e-45, 1},
    {"sign", -3, -1},
    {"clamp", nan, nan},
    {"clamp", -inf, -1.5},
    {"clamp", inf, 2.25},
    {"clamp", 1, 1},
    {"exponent_ceil", 0, 0x1p-127},
    {"exponent_ceil", 3, 4},
    {"exponent_ceil", -4, 4},
    {"exponent_ceil", inf, nan},
    {"exponent_ceil", nan, nan},
    {"exponent_ceil", 0x1p-127, 0x1p-127},
    {"exponent_ceil", 0x1.8p-127, 0x1p-126},
    {"exponent_floor", 0, 0x1p-127},
    {"exponent_floor", 3, 2},
    {"exponent_floor", -4, 4},
    {"exponent_floor", -inf, nan},
    {"exponent_floor", nan, nan},
    {"exponent_floor", 0x1.8p-127, 0x1p-127},
    {"exponent_floor", 0x1p-140, 0x1p-127},
};

TEST(Functions, limits) {
  for (const Limit& limit : limits) {
    const Function& f = functions()[*function_named(limit.name)];
    float narrow = value_of<float>(expanded(f, Type::F32), limit.x);
    double wide = value_of<double>(expanded(f, Type::F64), limit.x);
    EXPECT_TRUE(same(narrow, static_cast<float>(limit.y))) << f.name << " f32 of " << limit.x << " is " << narrow;
    EXPECT_TRUE(same(wide, limit.y)) << f.name << " f64 of " << limit.x << " is " << wide;
  }
}

TEST(Functions, left_limits_of_the_gates_are_zero) {
  for (std::string_view name : {"silu", "gelu", "gelu_tanh", "gelu_slope"})
    for (double x : {-inf, -1e30, -1000.0}) {
      const Function& f = functions()[*function_named(name)];
      EXPECT_EQ(value_of<float>(expanded(f, Type::F32), x), 0) << name;
      EXPECT_EQ(value_of<double>(expanded(f, Type::F64), x), 0) << name;
    }
}

// Masked softmax would crawl on processors that take subnormals slowly.
TEST(Functions, exponentials_are_never_subnormal) {
  for (std::string_view name : {"exp", "sigmoid", "softplus"}) {
    const Function& f = functions()[*function_named(name)];
    Expanded narrow = expanded(f, Type::F32), wide = expanded(f, Type::F64);
    for (double t = 0; t < 1; t += 0x1p-8) {
      float a = value_of<float>(narrow, -86.5 - 3 * t);
      double b = value_of<double>(wide, -707.5 - 3 * t);
      EXPECT_TRUE(a == 0 || a > 0x1.6p-126f) << name << " " << a;
      EXPECT_TRUE(b == 0 || b > 0x1.6p-1022) << name << " " << b;
    }
    EXPECT_GT(value_of<float>(narrow, -125.49 * std::log(2)), 0) << name;
    EXPECT_EQ(value_of<float>(narrow, -125.51 * std::log(2)), 0) << name;
    EXPECT_GT(value_of<double>(wide, -1021.49 * std::log(2)), 0) << name;
    EXPECT_EQ(value_of<double>(wide, -1021.51 * std::log(2)), 0) << name;
  }
}

// Rising functions rise, but for their error, and stay inside their range.
TEST(Functions, order_and_range) {
  struct Range {
    std::string_view name;
    float low, high;
  };
  constexpr float big = std::numeric_limits<float>::infinity();
  for (Range range : {Range{"exp", 0, big},
                      {"expm1", -1, big},
                      {"tanh", -1, 1},
                      {"sigmoid", 0, 1},
                      {"erf", -1, 1},
                      {"softplus", 0, big},
                      {"log", -big, big},
                      {"log1p", -big, big}}) {
    const Function& f = functions()[*function_named(range.name)];
    Expanded graph = expanded(f, Type::F32);
    Evaluator<float> evaluator(graph.program, graph.root);
    constexpr std::size_t block = Evaluator<float>::block;
    float xs[block], ys[block], before = -big;
    const float* args[] = {xs};
    // From -inf to inf through both zeros, in steps of 4099 floats.
    constexpr std::int64_t infinity_bits = 0x7f800000, stride = 4099;
    std::size_t filled = 0;
    auto flush = [&] {
      evaluator.run(args, std::span(ys, filled));
      for (std::size_t k = 0; k < filled; ++k) {
        if (std::isnan(ys[k])) continue;  // outside its domain
        ASSERT_TRUE(range.low <= ys[k] && ys[k] <= range.high) << f.name << " of " << xs[k] << " is " << ys[k];
        float slack = std::isinf(before) ? 0 : static_cast<float>(f.f32.bound * 0x1p-23) * std::fabs(before);
        ASSERT_GE(ys[k], before - slack) << f.name << " falls at " << xs[k];
        before = ys[k];
      }
      filled = 0;
    };
    for (std::int64_t rank = -infinity_bits; rank <= infinity_bits; rank += stride) {
      std::uint32_t bits = static_cast<std::uint32_t>(rank < 0 ? -rank : rank) | (rank < 0 ? 0x80000000u : 0);
      xs[filled++] = std::bit_cast<float>(bits);
      if (filled == block) flush();
    }
    flush();
  }
}

TEST(Functions, derivatives_match_central_differences) {
  for (const Function& f : functions())
    for (int k = 0; k < f.arity; ++k) {
      Expanded slope = expanded_derivative(f, k, Type::F64);
      if (slope.root == no_node) continue;
      for (double x : {-30.0, -6.1, -3.3, -0.9, -0.4, -0.01, 0.013, 0.3, 0.8, 1.7, 3.1, 5.5, 31.0}) {
        long double at[3] = {x, -1.5L, 2.25L}, step = 0x1p-22L * std::fmax(1.0L, std::fabs(at[k]));
        long double up[3] = {at[0], at[1], at[2]}, down[3] = {at[0], at[1], at[2]};
        up[k] += step, down[k] -= step;
        long double high = f.oracle.f64(up), low = f.oracle.f64(down);
        if (std::isnan(high) || std::isnan(low)) continue;
        double want = static_cast<double>((high - low) / (2 * step)), got = value_of<double>(slope, x);
        EXPECT_NEAR(got, want, 1e-9 * std::fmax(1, std::fabs(want))) << f.name << " by argument " << k << " at " << x;
      }
    }
}

TEST(Functions, derivatives_at_the_ends) {
  const Limit ends[] = {{"exp", -inf, 0},       {"tanh", inf, 0},        {"tanh", -inf, 0},    {"sigmoid", -inf, 0},
                        {"sigmoid", inf, 0},    {"silu", -inf, 0},       {"gelu", -inf, 0},    {"gelu", inf, 1},
                        {"gelu_tanh", -inf, 0}, {"gelu_tanh", inf, 1},   {"erf", inf, 0},      {"erf", -inf, 0},
                        {"gelu_slope", inf, 0}, {"gelu_slope", -inf, 0}, {"softplus", inf, 1}, {"softplus", -inf, 0},
                        {"relu", 0, 0},         {"relu", inf, 1},        {"log", inf, 0},      {"expm1", -inf, 0}};
  for (const Limit& end : ends) {
    const Function& f = functions()[*function_named(end.name)];
    EXPECT_NEAR(value_of<float>(expanded_derivative(f, 0, Type::F32), end.x), end.y, 1e-30) << f.name << " " << end.x;
    EXPECT_NEAR(value_of<double>(expanded_derivative(f, 0, Type::F64), end.x), end.y, 1e-30) << f.name << " " << end.x;
  }
}

TEST(Functions, instruction_counts_are_as_stated) {
  for (const Function& f : functions())
    for (Type compute : {Type::F32, Type::F64}) {
      Expanded graph = expanded(f, compute);
      EXPECT_EQ(instruction_count(graph.program, graph.root), f.cost(compute)) << f.name << " " << name(compute);
    }
}

// Divisors that are said to be at least 1 and no larger than 2^126, or infinite, are.
TEST(Functions, reciprocals_from_one_are) {
  std::size_t seen = 0;
  for (const Function& f : functions()) {
    if (f.arity != 1) continue;
    Expanded graph = expanded(f, Type::F32);
    for (NodeId id = 0; id < graph.program.size(); ++id) {
      const Node& node = graph.program[id];
      if (node.op != Op::Div || !node.payload) continue;
      ++seen;
      Evaluator<float> divisor(graph.program, node.args[1]);
      std::vector<float> x(Evaluator<float>::block), d(x.size());
      for (std::uint32_t high = 0; high < 1u << 12; ++high) {  // every sign, exponent and 3 bits, and what is between
        for (std::uint32_t k = 0; k < x.size(); ++k) x[k] = std::bit_cast<float>(high << 20 | k * 1025);
        const float* args[] = {x.data()};
        divisor.run(args, d);
        for (std::size_t k = 0; k < x.size(); ++k)
          ASSERT_TRUE((d[k] >= 1 && (d[k] < 0x1p126f || d[k] == inf)) || std::isnan(d[k])) << f.name << " " << x[k];
      }
    }
  }
  EXPECT_GE(seen, 4u);
}

// Targets know the primitives only, and every constant is a number of the compute type: nothing is left to rounding.
TEST(Functions, expansions_are_primitives) {
  for (const Function& f : functions())
    for (Type compute : {Type::F32, Type::F64}) {
      Expanded graph = expanded(f, compute);
      for (NodeId id = 0; id < graph.program.size(); ++id) {
        const Node& node = graph.program[id];
        bool leaf = node.op == Op::Number || node.op == Op::Operand;
        EXPECT_TRUE(leaf || (node.op >= Op::Add && node.op <= Op::BitsShiftRight))
            << f.name << " " << facts(node.op).name;
        if (node.op == Op::Number && compute == Type::F32) {
          double value = node.number();
          EXPECT_TRUE(std::isnan(value) || static_cast<float>(value) == value)
              << f.name << ": " << value << " is not an f32";
        }
      }
    }
}

TEST(Functions, table_lists_every_function) {
  std::string table = function_table_markdown();
  for (const Function& f : functions())
    EXPECT_NE(table.find("| `" + std::string(f.name) + "` |"), std::string::npos) << f.name;
  EXPECT_EQ(static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n')), functions().size() + 2);
}

}  // namespace
}  // namespace trireme
