// What is chosen for operators nobody looked at is a schedule that its machine can run.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/operator_points.hpp"
#include "schedule/choose.hpp"
#include "schedule/lower.hpp"
#include "targets/targets.hpp"

namespace trireme {
namespace {

TEST(ChosenSchedules, FitTheSharedMemoryOfTheirMachine) {
  const std::vector<OperatorPoint> points = operator_points();
  constexpr std::size_t sample = 5;  // widths, types and directions come in other numbers
  std::size_t begin = 0;
  for (const Target* target : targets())
    for (const std::string_view arch : target->common_archs) {
      const Machine machine = target->machine(arch).value();
      if (machine.simd) continue;
      for (std::size_t k = begin++ % sample; k < points.size(); k += sample) {
        const OperatorPoint& point = points[k];
        const Problem problem = point.problem(point.rows_of(1 << 27)).value();
        const Result<Prepared> prepared = prepare_problem(problem, {}, Fill::NoMemory);
        if (!prepared) continue;  // as of odd columns and n / 2
        const Facts facts = facts_of(prepared->program, prepared->view());
        const Result<Kernels> kernels = lower(prepared->program, choose_config(prepared->program, machine, facts));
        ASSERT_TRUE(kernels) << print(problem) << " on " << arch << ": " << kernels.error().message;
        EXPECT_LE(kernels->rows.scratch_bytes, machine.shared_bytes) << print(problem) << " on " << arch;
      }
    }
}

}  // namespace
}  // namespace trireme
