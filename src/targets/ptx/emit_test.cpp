// Emitted PTX is judged by ptxas, for every architecture we promise.
#include "targets/ptx/emit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "language/parse.hpp"
#include "passes/passes.hpp"
#include "schedule/lower.hpp"

namespace trireme {
namespace {

constexpr const char* rms_norm = R"(
rms_norm(x[i,j], gamma[j] = 1, eps = 1e-6) -> (y[i,j], rstd[i], g[j])
    rstd = rsqrt(mean(x * x) + eps)
    y    = x * rstd * gamma
    g    = colsum(x * rstd)
)";

struct Judge {
  const char* arch;
  std::int64_t shared_bytes;
  bool clusters;
};
constexpr Judge judges[] = {
    {"sm_90", 232448, true}, {"sm_80", 166912, false}, {"sm_100", 232448, true}, {"sm_120", 101376, true}};

bool assembles(const std::string& text, const std::string& arch) {
  std::string path = ::testing::TempDir() + "/trireme_" + std::to_string(getpid()) + ".ptx";
  std::ofstream(path) << text;
  bool right = std::system(("ptxas -arch=" + arch + " " + path + " -o /dev/null").c_str()) == 0;
  std::remove(path.c_str());
  return right;
}

std::size_t times(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// cvt makes 0 of an f32's NaN, but the least integer of an f64's.
TEST(PtxEmit, f64_nan_becomes_0_in_integers) {
  for (Type type : {Type::I8, Type::I32, Type::U8}) {
    Binding binding{.types = {{"x", Type::F64}, {"y", type}}};
    Program program = prepare(parse("f(x[i,j]) -> (y[i,j])\ny = x * 2\n").value(), binding).value().expanded;
    Facts facts{.rows = 100, .columns = 64, .alignment = 1};
    Config config = choose_config(program, {.simd = false, .shared_bytes = 166912, .processors = 132}, facts);
    std::string text = ptx::emit(lower(program, config).value(), "sm_80").value();
    EXPECT_GT(times(text, "cvt.rni.s32.f64"), 0u);
    EXPECT_EQ(times(text, "cvt.rni.s32.f64"), times(text, "setp.num.f64"));
  }
}

TEST(PtxEmit, PtxasAcceptsEverySchedule) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "ptxas is not on PATH";
  std::size_t turn = 0;
  for (Type type : {Type::F32, Type::BF16, Type::F64}) {
    Binding binding{.types = {{"x", type},
                              {"gamma", type},
                              {"y", type},
                              {"rstd", type == Type::F64 ? Type::F64 : Type::F32},
                              {"g", type == Type::F64 ? Type::F64 : Type::F32}}};
    for (bool sums : {false, true}) {
      binding.wanted = std::set<std::string>{"y", "rstd"};
      if (sums) binding.wanted->insert("g");
      Program program = prepare(parse(rms_norm).value(), binding).value().expanded;
      for (std::int64_t columns : {1, 64, 128, 257, 1024, 4096, 4097, 16384, 65536}) {
        const Judge& judge = judges[turn++ % std::size(judges)];
        Facts facts{.rows = 1000, .columns = columns, .alignment = columns % 16 ? 1 : 16};
        Config config = choose_config(
            program, {.simd = false, .shared_bytes = judge.shared_bytes, .clusters = judge.clusters}, facts);
        std::string text = ptx::emit(lower(program, config).value(), judge.arch).value();
        EXPECT_TRUE(assembles(text, judge.arch)) << judge.arch << " " << print(config) << "\n" << text;
      }
    }
  }
}

// The way by which a kernel divides by a constant (Machine::divide_by), in the same IEEE arithmetic.
TEST(PtxEmit, QuotientsThroughDoublesAreRoundedOnce) {
  auto quotient = [](float a, float divisor) {
    double reciprocal = 1 / double{divisor}, guess = a * reciprocal;
    double remainder = std::fma(guess, -double{divisor}, a);
    return static_cast<float>(remainder < 0 || remainder > 0 ? std::fma(remainder, reciprocal, guess) : guess);
  };
  std::uint32_t bits = 1;
  for (float divisor : {3.0f, 6.0f, 49.0f, 2880.0f, -7168.0f, 16777215.0f})
    for (std::uint32_t k = 0; k < 1 << 18; ++k) {
      bits = bits * 1664525 + 1013904223;
      // Any number, small multiples of the least one (ties among subnormals), multiples of the divisor.
      for (float a : {std::bit_cast<float>(bits), std::bit_cast<float>(k), static_cast<float>(k) * divisor}) {
        float wanted = a / divisor, got = quotient(a, divisor);
        if (std::isnan(wanted)) ASSERT_TRUE(std::isnan(got));
        else
          ASSERT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(wanted)) << a << " / " << divisor;
      }
    }
}

// Every type is stored on every architecture; f8 before sm_89 by arithmetic.
TEST(PtxEmit, PtxasAcceptsEveryStoredType) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "ptxas is not on PATH";
  for (const char* arch : {"sm_80", "sm_90"}) {
    std::vector<Kernel> kernels;
    for (Type compute : {Type::F32, Type::F64})
      for (const TypeFacts& each : type_facts) {
        const Type type = each.type;
        if (type == Type::F64 || type == compute) continue;
        Program program =
            prepare(parse("p(x[i,j]) -> (y[i,j])\n  y = x * 3\n").value(), {.types = {{"x", compute}, {"y", type}}})
                .value()
                .expanded;
        Facts facts{.rows = 10, .columns = 96, .alignment = 16};
        Config config = choose_config(program, {.simd = false, .shared_bytes = 101376}, facts);
        kernels.push_back(lower(program, config).value().rows);
        kernels.back().name += std::to_string(kernels.size());
      }
    std::string text = ptx::emit(kernels, arch).value();
    EXPECT_TRUE(assembles(text, arch)) << text;
  }
}

// Sums over rows and over columns that share an entry, in registers and in loops, with terms in scratch and workspace.
TEST(PtxEmit, fault_47_PtxasAcceptsSumsIntoSharedEntries) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "ptxas is not on PATH";
  std::size_t turn = 0;
  for (const char* spread : {"", "i % 3, j", "(i / 4) % 3, (j / 2) % 5", "j % 7", "i / 9, j / 300", "i / 5"})
    for (std::int64_t columns : {96, 3000, 70000}) {  // one for each judge
      const Judge& judge = judges[turn++ % std::size(judges)];
      const Type compute = turn % 4 == 1 ? Type::F64 : Type::F32;
      const std::string text = "p(x[i,j], w[j]) -> (y[i,j], s[" + std::string(spread) +
                               "], c[j])\n  y = x * w / sum(x)\n  s = colsum(y)\n  c = colsum(x)\n";
      const Program program =
          prepare(parse(text).value(),
                  {.types = {{"x", compute}, {"w", compute}, {"y", compute}, {"s", Type::BF16}, {"c", compute}}})
              .value()
              .expanded;
      const Facts facts{.rows = 10, .columns = columns, .alignment = 8};
      const Machine machine{.simd = false, .shared_bytes = judge.shared_bytes, .clusters = judge.clusters};
      const std::string code =
          ptx::emit(lower(program, choose_config(program, machine, facts)).value(), judge.arch).value();
      EXPECT_TRUE(assembles(code, judge.arch)) << judge.arch << "\n" << code;
    }
}

}  // namespace
}  // namespace trireme
