#include "plan/manifest.hpp"

#include <gtest/gtest.h>

#include "devices/arguments.hpp"
#include "plan/check.hpp"
#include "schedule/lower.hpp"

namespace trireme {
namespace {

std::string manifest_of_text(std::string_view text) {
  Prepared prepared = prepare_problem(parse_problem("p 3x300").value(), text, Fill::NoMemory).value();
  Facts facts = facts_of(prepared.program, prepared.view());
  Config config = choose_config(prepared.program, {.simd = true, .register_bytes = 16}, facts);
  Kernels kernels = lower(prepared.program, config).value();
  return manifest_of(prepared.program, kernels, config, {.columns = 300, .constants = prepared.constants}).value();
}

// Rotations are made for a number of columns: a host must not take the module for another.
TEST(Manifest, fault_52_rotations_fix_the_columns) {
  EXPECT_NE(manifest_of_text("p(x[i,j]) -> (y[i,j])\n  y = x * 2\n").find("\"columns\":0,"), std::string::npos);
  EXPECT_NE(manifest_of_text("p(x[i,j]) -> (y[i,j])\n  y = rotate(x, n / 2)\n").find("\"columns\":300,"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme
