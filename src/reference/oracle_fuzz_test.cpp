// Random programs: what the expanded program gives must lie within what the oracle allows the bound one.
// Fixed seeds always; LONG=1 goes on for minutes. A failure shows the seed, the shape and the text.
#include <cstdlib>
#include <numeric>

#include "language/print.hpp"
#include "language/random_program.hpp"
#include "passes/passes.hpp"
#include "reference/draft_for_test.hpp"
#include "reference/oracle.hpp"

namespace trireme {
namespace {

void check(const RandomProgram& options, std::int64_t rows, std::int64_t columns, Type element, Type other) {
  Program program = random_program(options);
  Binding binding;
  if (options.seed % 2) binding.columns = columns;  // or the reference and the oracle find out how far rotations turn
  for (const Operand& operand : program.operands)
    if (operand.constant && operand.fallback == no_node) binding.constants[operand.name] = 0.75;
  for (const Operand& operand : program.operands)
    if (!operand.constant) binding.types[operand.name] = operand.spread.column.present ? element : other;
  for (const Output& result : program.results) binding.types[result.name] = result.spread.row.present ? element : other;
  Result<Program> bound = bind(program, binding);
  if (!bound) {
    FAIL() << bound.error().message << '\n' << print(program);
  }
  Program expanded = prepare(program, binding).value().expanded;
  Buffers buffers = make_buffers(*bound, {rows, columns}).value();
  std::vector<double> constants(bound->operands.size());
  for (std::size_t k = 0; k < buffers.operands.size(); ++k) {
    const Buffer& buffer = buffers.operands[k];
    const Operand& operand = bound->operands[k];
    if (operand.constant)
      constants[k] = operand.fallback == no_node ? 0.75 : as_number(*bound, operand.fallback).value();
    for (std::int64_t r = 0; r < buffer.row_extent; ++r)
      for (std::int64_t c = 0; c < buffer.column_extent; ++c)
        store_f64(buffer.array.type, buffer.array.entry(r, c),
                  std::remainder(rough(static_cast<std::int64_t>(options.seed) + r, c + 31 * static_cast<int>(k)), 9));
  }
  std::vector<Array> arrays = buffers.arrays();
  Problem2d problem{rows, columns, constants, arrays};
  Status ran = run_reference(expanded, problem);
  ASSERT_TRUE(ran) << ran.error().message << '\n' << print(program);
  std::vector<OracleResult> oracle = run_oracle(*bound, problem).value();
  for (const LargestError& error : largest_errors(*bound, oracle, std::span(arrays).subspan(bound->operands.size())))
    ASSERT_TRUE(error.fine()) << "seed " << options.seed << ' ' << rows << 'x' << columns << ' ' << error.result << '['
                              << error.row << ',' << error.column << "] got " << error.got << " want " << error.want
                              << " tolerance " << error.tolerance << '\n'
                              << print(*bound) << '\n'
                              << print(expanded);
}

TEST(OracleFuzz, random_programs_lie_within_their_bounds) {
  int count = std::getenv("LONG") ? 100000 : 500;
  const std::int64_t sizes[][2] = {{1, 1}, {3, 7}, {2, 257}, {5, 33}, {20, 4}, {2, 600}};
  for (int seed = 0; seed < count && !::testing::Test::HasFatalFailure(); ++seed) {
    RandomProgram options{.seed = static_cast<std::uint64_t>(seed), .size = 5 + seed % 23};
    options.special_numbers = seed % 4 == 0;
    auto [rows, columns] = sizes[seed % std::size(sizes)];
    options.columns_multiple = static_cast<int>(std::gcd(columns, 60));
    Type types[] = {Type::F32, Type::BF16, Type::F64, Type::F16, Type::F8E4M3, Type::F8E5M2};
    Type element = types[seed % 7 % 6];
    check(options, rows, columns, element, element == Type::F64 ? Type::F64 : Type::F32);
  }
}

}  // namespace
}  // namespace trireme
