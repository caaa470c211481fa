// Programs that were once lowered wrongly, each by its fault, on every device of this machine.
#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/digest.hpp"
#include "plan/problem.hpp"
#include "reference/reference.hpp"

namespace trireme {
namespace {

void expect_same_bits(std::string_view text, const std::string& line) {
  auto prepare = [&] { return prepare_problem(parse_problem(line).value(), text).value(); };
  Prepared wanted = prepare();
  ASSERT_TRUE(run_reference(wanted.program, wanted.view()));
  for (const char* name : {"cpu:avx512", "cpu:avx2", "lanes"}) {
    const DeviceEntry& device = *find_device(name);
    if (!device.missing().empty()) continue;
    Prepared got = prepare();
    auto executable = device.compile(got.program, facts_of(got.program, got.view()));
    ASSERT_TRUE(executable) << name << ": " << executable.error().message;
    Status status = executable.value()->run(got.view(), {});
    ASSERT_TRUE(status) << name << ": " << status.error().message;
    EXPECT_EQ(digest_of(got), digest_of(wanted)) << name << " " << line << "\n" << text;
  }
}

TEST(LoweringRegressions, a_column_sum_of_a_constant) {
  for (const char* line : {"p 5x300", "p 1x7", "p 0x16"})
    expect_same_bits(
        "p(x[i,j], eps = 0.1) -> (y[i,j], n_rows[j], scaled[j])\n"
        "  y = x\n  n_rows = colsum(1)\n  scaled = colsum(eps)\n",
        line);
}

TEST(LoweringRegressions, columns_divided_and_then_wrapped) {
  for (const char* line : {"p 3x7", "p 3x64", "p 3x300", "p 2x1030 x=bf16"})
    expect_same_bits("p(x[i,j], w[(j / 3) % 5]) -> (y[i,j])\n  y = x * w\n", line);
}

// The row's end comes between two columns of a wrapped index that are no neighbours.
TEST(LoweringRegressions, columns_wrapped_and_rotated) {
  for (const char* line : {"p 3x64", "p 3x512", "p 2x301 x=bf16", "p 2x1030 x=f64"})
    expect_same_bits("p(x[i,j], w[j % 6]) -> (y[i,j])\n  y = x * rotate(w, 3)\n", line);
}

}  // namespace
}  // namespace trireme
