// Making a kernel takes 0.15 µs an instruction; bench/emission.cpp times it. What can be checked without a clock is
// that no operator becomes more code than half a millisecond's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "schedule/across.hpp"
#include "schedule/lower.hpp"
#include "targets/x86/emit.hpp"

namespace trireme {
namespace {

std::size_t instructions(const std::vector<Instr>& code) {
  std::size_t count = code.size();
  for (const Instr& each : code) count += instructions(each.body) + instructions(each.other);
  return count;
}

TEST(CodeSize, NoKernelIsLargerThanCanBeMadeAtOnce) {
  std::size_t largest = 0;
  for (const OperatorText& op : operator_texts()) {
    for (bool backward : {false, true})
      for (Type type : {Type::F32, Type::F64, Type::BF16})
        for (std::int64_t columns : {128, 512, 4096}) {
          const Problem problem = OperatorPoint{&op, backward, type, columns}.problem(1).value();
          const Prepared prepared = prepare_problem(problem, {}, Fill::Nothing).value();
          Facts facts = facts_of(prepared.program, prepared.view());
          for (auto [rows, together] : {std::pair{256, 0}, {1 << 20, 0}, {256, 256}, {1 << 20, 1 << 20}})
            for (x86::Isa isa : {x86::Isa::Avx2, x86::Isa::Avx512}) {
              facts.rows = rows;
              facts.together = together;
              facts.rows_apart = rows > 256;
              facts.layout.arrays[0] = {.strided = together > 0};  // rows lie side by side, where they can
              if (together && !goes_across(prepared.program)) continue;
              Result<Kernels> kernels =
                  lower(prepared.program, choose_config(prepared.program, x86::machine_of(isa), facts));
              ASSERT_TRUE(kernels) << print(problem) << ": " << kernels.error().message;
              std::size_t count = instructions(kernels->rows.body);
              for (const Kernel& each : kernels->columns) count += instructions(each.body);
              EXPECT_LE(count, 3300) << rows << " rows of " << print(problem);
              largest = std::max(largest, count);
            }
        }
  }
  EXPECT_GT(largest, 800);  // or nothing was measured
}

}  // namespace
}  // namespace trireme
