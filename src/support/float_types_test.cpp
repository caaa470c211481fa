#include "support/float_types.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "support/contract_arithmetic.hpp"
#include "support/environment.hpp"
#include "support/every_f32_for_test.hpp"

namespace trireme {
namespace {

constexpr Type small_floats[] = {Type::F16, Type::BF16, Type::F8E4M3, Type::F8E5M2};

std::uint64_t patterns(Type type) { return std::uint64_t{1} << (8 * bytes(type)); }
bool long_run() { return std::getenv("LONG") != nullptr; }

// An independent rule: all finite magnitudes of the type in order, and beyond them the value that the next exponent
// would hold; the nearest by exact differences, ties to the even pattern.
class NearestBySearch {
 public:
  explicit NearestBySearch(Type type) : type_(type) {
    for (std::uint64_t bits = 0; bits < patterns(type) / 2; ++bits) {
      double value = widen(type, bits);
      if (std::isfinite(value)) values_.push_back(value);
    }
    values_.push_back(2 * values_.back() - values_[values_.size() - 2]);
  }

  // Goes from where the last search ended: callers ask in order.
  std::uint64_t operator()(double value) {
    double magnitude = std::fabs(value);
    std::uint64_t sign = std::signbit(value) ? patterns(type_) / 2 : 0, last = values_.size() - 1;
    std::uint64_t& above = above_;  // the first that is not below
    while (above <= last && values_[above] < magnitude) ++above;
    while (above > 0 && values_[above - 1] >= magnitude) --above;
    std::uint64_t nearest;
    if (above > last) {
      nearest = last;
    } else if (values_[above] == magnitude) {
      nearest = above;
    } else {
      // Both differences are exact by Sterbenz or because one side is tiny; ties are what matters and those are exact.
      double up = values_[above] - magnitude, down = magnitude - values_[above - 1];
      nearest = up < down || (up == down && above % 2 == 0) ? above : above - 1;
    }
    bool saturates = type_ == Type::F8E4M3 || type_ == Type::F8E5M2;
    return sign | (saturates ? std::min(nearest, last - 1) : nearest);  // in IEEE types `last` is infinity's pattern
  }

 private:
  Type type_;
  std::vector<double> values_;
  std::uint64_t above_ = 0;
};

TEST(FloatTypes, every_small_value_survives_the_round_trip) {
  for (Type type : small_floats)
    for (std::uint64_t bits = 0; bits < patterns(type); ++bits) {
      double value = widen(type, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(widen(type, round_to_bits(type, value)))) << name(type) << ' ' << bits;
      } else if (std::isinf(value) && type == Type::F8E5M2) {
        EXPECT_EQ(std::fabs(widen(type, round_to_bits(type, value))), 57344);
      } else {
        EXPECT_EQ(round_to_bits(type, value), bits) << name(type);
      }
    }
  for (int k = -128; k < 128; ++k) EXPECT_EQ(widen(Type::I8, round_to_bits(Type::I8, k)), k);
}

TEST(FloatTypes, corners_are_those_of_the_formats) {
  EXPECT_EQ(widen(Type::F8E4M3, 0x7E), 448);
  EXPECT_TRUE(std::isnan(widen(Type::F8E4M3, 0x7F)));
  EXPECT_TRUE(std::isnan(widen(Type::F8E4M3, 0xFF)));
  EXPECT_EQ(widen(Type::F8E4M3, 0x01), 0x1p-9);
  EXPECT_EQ(widen(Type::F8E5M2, 0x7B), 57344);
  EXPECT_EQ(widen(Type::F8E5M2, 0xFC), -HUGE_VAL);
  EXPECT_EQ(widen(Type::F8E5M2, 0x01), 0x1p-16);
  EXPECT_EQ(widen(Type::F16, 0x7BFF), 65504);
  EXPECT_EQ(widen(Type::F16, 0x0001), 0x1p-24);
  EXPECT_EQ(widen(Type::BF16, 0x7F7F), 0x1.fep127);
  EXPECT_EQ(widen(Type::BF16, 0x0001), 0x1p-133);
  for (const TypeFacts& each : type_facts)
    EXPECT_EQ(widen(each.type, round_to_bits(each.type, each.largest)), each.largest) << each.name;
}

TEST(FloatTypes, fault_16_stores_beyond_the_largest) {
  EXPECT_EQ(round_to_bits(Type::F16, 65519.99), 0x7BFFu);
  EXPECT_EQ(round_to_bits(Type::F16, 65520), 0x7C00u);  // the tie goes to the even side: infinity
  EXPECT_EQ(round_to_bits(Type::BF16, 0x1.fffffep127), 0x7F80u);
  for (double big : {449., 464., 465., 1e30, HUGE_VAL}) {
    EXPECT_EQ(round_to_bits(Type::F8E4M3, big), 0x7Eu);
    EXPECT_EQ(round_to_bits(Type::F8E4M3, -big), 0xFEu);
  }
  EXPECT_EQ(round_to_bits(Type::F8E5M2, HUGE_VAL), 0x7Bu);
  EXPECT_EQ(round_to_bits(Type::F8E5M2, -1e9), 0xFBu);
  EXPECT_EQ(round_to_bits(Type::I8, 127.5), 127u);
  EXPECT_EQ(round_to_bits(Type::I8, -HUGE_VAL), 0x80u);
  EXPECT_EQ(round_to_bits(Type::I8, -128.5), 0x80u);
  EXPECT_EQ(round_to_bits(Type::I8, 2.5), 2u);
  EXPECT_EQ(round_to_bits(Type::I8, -3.5), 0xFCu);
  EXPECT_EQ(round_to_bits(Type::I32, 3e9), 0x7FFFFFFFu);
  EXPECT_EQ(round_to_bits(Type::I32, -HUGE_VAL), 0x80000000u);
  EXPECT_EQ(round_to_bits(Type::U8, 255.5), 255u);
  EXPECT_EQ(round_to_bits(Type::U8, -1), 0u);
  EXPECT_EQ(round_to_bits(Type::U8, 2.5), 2u);
  EXPECT_EQ(round_to_bits(Type::I64, 0x1p63), 0x7FFFFFFFFFFFFFFFu);
  EXPECT_EQ(round_to_bits(Type::I64, 0x1.fffffffffffffp62), 0x7FFFFFFFFFFFFC00u);
  EXPECT_EQ(round_to_bits(Type::I64, -HUGE_VAL), 0x8000000000000000u);
  for (Type type : {Type::I8, Type::I32, Type::I64, Type::U8}) EXPECT_EQ(round_to_bits(type, std::nan("")), 0u);
  for (Type type : small_floats) EXPECT_TRUE(std::isnan(widen(type, round_to_bits(type, -std::nan("")))));
}

TEST(FloatTypes, powers_of_two_are_the_nearest_and_ties_go_up) {
  const Type type = Type::F8E8M0;
  for (std::uint64_t bits = 0; bits < 255; ++bits) {
    const double value = widen(type, bits), next = 2 * value;
    EXPECT_EQ(value, std::ldexp(1.0, static_cast<int>(bits) - 127));
    EXPECT_EQ(round_to_bits(type, value), bits);
    if (bits == 254) break;
    EXPECT_EQ(round_to_bits(type, std::nextafter(value + value / 2, 0)), bits);
    EXPECT_EQ(round_to_bits(type, value + value / 2), bits + 1);
    EXPECT_EQ(round_to_bits(type, std::nextafter(next, 0)), bits + 1);
  }
  for (double below : {0.0, -0.0, -1.0, -HUGE_VAL, 0x1p-149}) EXPECT_EQ(round_to_bits(type, below), 0u);
  for (double above : {0x1p127, 0x1.8p127, 0x1.fffffep127, 1e300, HUGE_VAL})
    EXPECT_EQ(round_to_bits(type, above), 254u);
  EXPECT_EQ(round_to_bits(type, std::nan("")), 255u);
  EXPECT_TRUE(std::isnan(widen(type, 255)));
}

TEST(FloatTypes, f4e2m1_has_fifteen_numbers_and_neither_infinity_nor_nan) {
  const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::uint64_t bits = 0; bits < 16; ++bits) {
    EXPECT_EQ(widen(Type::F4E2M1, bits), bits < 8 ? numbers[bits] : -numbers[bits - 8]);
    EXPECT_EQ(round_to_bits(Type::F4E2M1, widen(Type::F4E2M1, bits)), bits);
  }
  for (std::uint64_t bits = 0; bits < 7; ++bits) {  // ties go to the even pattern
    const double tie = (numbers[bits] + numbers[bits + 1]) / 2;
    EXPECT_EQ(round_to_bits(Type::F4E2M1, tie), bits + bits % 2);
    EXPECT_EQ(round_to_bits(Type::F4E2M1, std::nextafter(tie, 0)), bits);
    EXPECT_EQ(round_to_bits(Type::F4E2M1, std::nextafter(tie, 9)), bits + 1);
  }
  EXPECT_EQ(round_to_bits(Type::F4E2M1, -0.0), 8u);
  EXPECT_EQ(round_to_bits(Type::F4E2M1, -0x1p-1000), 8u);
  for (double big : {6.5, 7.0, 1e30, HUGE_VAL}) {
    EXPECT_EQ(round_to_bits(Type::F4E2M1, big), 7u);
    EXPECT_EQ(round_to_bits(Type::F4E2M1, -big), 15u);
  }
  EXPECT_EQ(round_to_bits(Type::F4E2M1, std::nan("")), 7u);
  EXPECT_EQ(round_to_bits(Type::F4E2M1, -std::nan("")), 7u);
}

bool is_nearest(Type type, NearestBySearch& nearest, double value) {
  std::uint64_t got = round_to_bits(type, value), want = nearest(value);
  if (got != want) ADD_FAILURE() << name(type) << ' ' << std::hexfloat << value << " got " << got << " want " << want;
  return got == want;
}

TEST(FloatTypes, rounding_is_to_the_nearest_value) {
  EveryF32 numbers{long_run() ? 1u : 10007u};
  for (Type type : small_floats) {
    in_parts(numbers.count(), [&](std::uint64_t first, std::uint64_t last) {
      NearestBySearch nearest(type);
      for (std::uint64_t k = first; k < last; ++k)
        if (!std::isnan(numbers(k)) && !is_nearest(type, nearest, numbers(k))) return;
    });
    // Halfway between neighbours, and the f64 values just beside: double rounding would show here.
    NearestBySearch nearest(type);
    for (std::uint64_t bits = 0; bits + 1 < patterns(type) / 2; ++bits) {
      double middle = (widen(type, bits) + widen(type, bits + 1)) / 2;
      if (!std::isfinite(middle)) continue;
      for (double value : {middle, std::nextafter(middle, 0), std::nextafter(middle, HUGE_VAL)})
        if (!is_nearest(type, nearest, value) || !is_nearest(type, nearest, -value)) return;
    }
  }
}

TEST(FloatTypes, rounding_once_is_rounding_through_f32_to_odd) {
  auto to_odd = [](double value) {
    float nearest = static_cast<float>(value);
    if (std::isnan(value) || nearest == value) return nearest;
    // Towards zero, then the last bit set.
    std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
    if (std::fabs(nearest) > std::fabs(value)) --bits;
    return std::bit_cast<float>(bits | 1);
  };
  std::uint64_t state = 1;
  for (int k = 0; k < 300000; ++k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Exponents near those of the types, mantissas that are random or end in long runs of one bit.
    std::uint64_t mantissa = (state >> 12) & (k % 3 ? ~std::uint64_t{0} << (state >> 58) : ~std::uint64_t{0});
    int exponent = static_cast<int>((state * 0x9E3779B97F4A7C15u) >> 55) % 300 - 155;
    double value = std::ldexp(1 + static_cast<double>(mantissa & ((std::uint64_t{1} << 52) - 1)) * 0x1p-52, exponent);
    for (Type type : small_floats) ASSERT_EQ(round_to_bits(type, value), round_to_bits(type, to_odd(value))) << value;
    ASSERT_EQ(round_to_bits(Type::F32, value), std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  }
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) void judge_rounding_by_f16c(EveryF32 numbers, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t k = first; k < last; ++k) {
    float value = numbers(k);
    if (std::isnan(value)) continue;
    std::uint16_t want = _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
    ASSERT_EQ(round_to_bits(Type::F16, value), want) << value;
  }
}

__attribute__((target("f16c"))) void judge_widening_by_f16c() {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    float want = _cvtsh_ss(static_cast<std::uint16_t>(bits)), got = load_f32(Type::F16, &bits);
    ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << bits;
  }
}

TEST(FloatTypes, f16c_agrees) {
  const bool hidden = std::ranges::count(environment::hidden().value(), "avx2") != 0;
  if (hidden || !__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2, with which F16C comes";
  EveryF32 numbers{long_run() ? 1u : 1009u};
  in_parts(numbers.count(), [=](auto first, auto last) { judge_rounding_by_f16c(numbers, first, last); });
  judge_widening_by_f16c();
}
#endif

TEST(FloatTypes, contract_arithmetic_restores_the_callers_state) {
  const FloatingPointState before = floating_point_state();
  set_floating_point_state(careless_state);
  {
    ContractArithmetic arithmetic;
    EXPECT_EQ(floating_point_state() & ~sticky_bits, contract_state);
  }
  EXPECT_EQ(floating_point_state() & ~sticky_bits, careless_state);
  set_floating_point_state(before);
}

TEST(FloatTypes, elements_lie_at_any_address) {
  unsigned char memory[32] = {};
  for (const TypeFacts& each : type_facts) {
    const float number = each.least < 0 ? -3.0f : 4.0f;
    store_f32(each.type, memory + 1, number);
    EXPECT_EQ(load_f32(each.type, memory + 1), number);
    store_f64(each.type, memory + 3, 4.0);
    EXPECT_EQ(load_f64(each.type, memory + 3), 4.0);
    EXPECT_EQ(memory[3 + bytes(each.type)], 0);
    std::memset(memory, 0, sizeof memory);
  }
  std::int32_t big = 16777217;
  EXPECT_EQ(load_f32(Type::I32, &big), 16777216.0f);
  EXPECT_EQ(load_f64(Type::I32, &big), 16777217.0);
  EXPECT_EQ(through_type(Type::BF16, 1.005f), 1.0078125f);
  // Through f64 the first rounding would end on the tie of the second.
  std::int64_t twice = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  EXPECT_EQ(load_f32(Type::I64, &twice), 0x1.000002p60f);
  EXPECT_EQ(load_f64(Type::I64, &twice), 0x1.000001p60);
}

}  // namespace
}  // namespace trireme
