// Random programs: what `simplify` makes of a program has the bits of the program as it stands, with all that has bits
// of its own among the values: zeros of both signs, subnormals, infinities, NaN, integers that the compute type rounds.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

#include "language/print.hpp"
#include "language/random_program.hpp"
#include "layout/elements.hpp"
#include "passes/passes.hpp"
#include "reference/draft_for_test.hpp"

namespace trireme {
namespace {

double special(std::uint64_t h) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double values[] = {0.0,       -0.0,      1,         -1,         0.5,      3,        -2.75,   infinity,
                               -infinity, 0x1p-149,  -0x1p-149, 0x1p-126,   0x1p-130, 0x1p127,  100,     -7,
                               16777217,  -16777217, 1e-3,      2147483647, 0x1p-40,  -0x1p-40, 0x1p100, 5};
  if (h % 41 == 0) return std::nan("");
  return values[(h >> 8) % std::size(values)];
}

// Bytes of all results; NaNs become one.
std::vector<double> results_of(const Program& program, const Program& bound, std::int64_t rows, std::int64_t columns,
                               std::uint64_t seed) {
  Buffers buffers = make_buffers(bound, {rows, columns}).value();
  std::vector<double> constants(bound.operands.size(), 0.75);
  for (std::size_t k = 0; k < buffers.operands.size(); ++k) {
    const Buffer& buffer = buffers.operands[k];
    const Operand& operand = bound.operands[k];
    if (operand.constant && operand.fallback != no_node) constants[k] = as_number(bound, operand.fallback).value();
    for (std::int64_t r = 0; r < buffer.row_extent; ++r)
      for (std::int64_t c = 0; c < buffer.column_extent; ++c) {
        const auto at = static_cast<std::uint64_t>(r * 1009 + c) * 0x9E3779B97F4A7C15u;
        const std::uint64_t h = (at ^ (seed * 31 + k)) * 0xBF58476D1CE4E5B9u;
        store_f64(buffer.array.type, buffer.array.entry(r, c), special(h ^ h >> 31));
      }
  }
  std::vector<Array> arrays = buffers.arrays();
  const Status ran = run_reference(program, {rows, columns, constants, arrays});
  EXPECT_TRUE(ran.has_value()) << (ran ? "" : ran.error().message);
  std::vector<double> values;
  for (const Buffer& buffer : buffers.results)
    for (std::int64_t r = 0; r < buffer.row_extent; ++r)
      for (std::int64_t c = 0; c < buffer.column_extent; ++c)
        values.push_back(load_f64(buffer.array.type, buffer.array.entry(r, c)));
  return values;
}

bool same_bits(double a, double b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

// Any type but f4e2m1, which not every array may have; half of the programs compute in f64.
Binding binding_of(const Program& program, std::uint64_t seed) {
  constexpr Type types[] = {Type::F32, Type::I32, Type::F32,    Type::F16,    Type::I64, Type::BF16,
                            Type::U8,  Type::I8,  Type::F8E5M2, Type::F8E4M3, Type::F32, Type::F8E8M0};
  Binding binding;
  std::uint64_t dice = seed * 0x9E3779B97F4A7C15u;
  auto type = [&] {
    dice = (dice ^ dice >> 29) * 0xBF58476D1CE4E5B9u + 1;
    return dice >> 40 & 7 ? types[(dice >> 44) % std::size(types)] : seed % 2 ? Type::F64 : Type::F32;
  };
  for (const Operand& operand : program.operands) {
    const bool picks = operand.name[0] == 'p';
    if (operand.constant && operand.fallback == no_node) binding.constants[operand.name] = 0.75;
    if (operand.constant) continue;
    if (operand.fallback != no_node && type() == Type::F32) binding.absent.insert(operand.name);
    else binding.types[operand.name] = picks ? Type::I64 : type();
  }
  for (const Output& result : program.results) binding.types[result.name] = type();
  return binding;
}

TEST(Literal, SimplifyingKeepsEveryBit) {
  const std::int64_t sizes[][2] = {{1, 1}, {3, 7}, {2, 260}, {5, 33}};
  const std::size_t count = std::getenv("LONG") ? 200000 : 10000;
  std::size_t zeros = 0, compared = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const auto [rows, columns] = sizes[seed % std::size(sizes)];
    RandomProgram options{.seed = seed, .size = static_cast<int>(4 + seed % 25), .picks = seed % 3 == 0};
    options.special_numbers = seed % 2 == 0;
    options.columns_multiple = static_cast<int>(std::gcd(columns, 60));
    const Program program = random_program(options);
    const Result<Program> made = bind(program, binding_of(program, seed));
    if (!made) continue;  // largest() of what is absent
    const Program& bound = *made;
    const Result<Program> plain = expand(bound);
    if (!plain) continue;  // rotations inside rotations
    const Program simple = simplify(expand(simplify(bound)).value());
    const std::vector<double> want = results_of(*plain, bound, rows, columns, seed);
    const std::vector<double> got = results_of(simple, bound, rows, columns, seed);
    for (std::size_t k = 0; k < want.size(); ++k, ++compared) {
      zeros += want[k] == 0;
      ASSERT_TRUE(same_bits(got[k], want[k]))
          << "seed " << seed << " entry " << k << " got " << got[k] << " want " << want[k] << '\n'
          << print(bound) << print(simplify(bound));
    }
  }
  EXPECT_GT(compared, 100 * count);
  EXPECT_GT(zeros, count);
}

}  // namespace
}  // namespace trireme
