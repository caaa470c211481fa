// What callers may do wrong without a compiler's objection ends in errors.
#include <cstdint>
#include <limits>

#include "plan/plan_for_test.hpp"

namespace trireme {
namespace {

constexpr auto no_such_type = static_cast<Type>(77);

TEST(PlanMisuse, fault_45_a_type_that_does_not_exist) {
  EXPECT_EQ(name(no_such_type), "no type");
  expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {3, 4}, .types = {{"x", no_such_type}}}),
                 Code::InvalidArgument, "'x': 77 is no type");
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {3, 4}}).value();
  Floats x(12);
  Args args = plan.args();
  args["x"] = {.data = x.data(), .type = no_such_type};
  expect_refused(plan.check(args), Code::InvalidArgument, "the view is no type, the plan was made for f32");
  expect_refused(run("rms_norm", {{"x", {.data = x.data(), .type = no_such_type, .shape = {3, 4}}}}),
                 Code::InvalidArgument, "77 is no type");
}

TEST(PlanMisuse, fault_45_no_program) {
  RowProgram none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.print(), "");
  EXPECT_EQ(none.name(), "");
  EXPECT_TRUE(none.signature().empty());
  expect_refused(none.differentiate(), Code::InvalidArgument, "no program");
  expect_refused(Plan::create(cpu(), {.shape = {3, 4}}), Code::InvalidArgument, "program");
}

TEST(PlanMisuse, fault_45_what_was_moved_away) {
  RowProgram program = rms_norm(), program_moved = std::move(program);
  EXPECT_EQ(program.name(), "rms_norm");  // NOLINT(bugprone-use-after-move)
  Plan plan = Plan::create(cpu(), {.program = program_moved, .shape = {3, 4}}).value(), plan_moved = std::move(plan);
  EXPECT_EQ(plan.array_count(), 4u);  // NOLINT(bugprone-use-after-move)
  Args args = plan.args(), args_moved = std::move(args);
  Floats x(12);
  args["x"] = view(x);  // NOLINT(bugprone-use-after-move)
  expect_refused(args.slot("x"), Code::InvalidArgument, "moved away");
  expect_refused(args.slot(0), Code::InvalidArgument, "moved away");
  expect_refused(plan.run(args), Code::InvalidArgument, "moved away");
}

TEST(PlanMisuse, fault_45_arrays_beyond_the_plans) {
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {3, 4}}).value();
  EXPECT_EQ(plan.array(0).name, "x");
  EXPECT_EQ(plan.array(4).name, "");
}

TEST(PlanMisuse, fault_45_strides_beyond_any_memory) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t stride : {most, -most - 1, most / 2, std::int64_t{1} << 58}) {
    expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {9, 4}, .strides = {{"x", {stride, 1}}}}),
                   Code::InvalidArgument, "reach beyond 2^61 bytes");
    Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {9, 4}}).value();
    Floats x(36);
    Args args = plan.args();
    args["x"] = {.data = x.data(), .strides = {stride, 1}};
    expect_refused(plan.check(args), Code::InvalidArgument, "reach beyond 2^61 bytes");
  }
}

TEST(PlanMisuse, fault_45_a_workspace_over_an_array) {
  if (!has_kernels()) return;  // the reference needs no workspace
  RowProgram backward = rms_norm().differentiate().value();
  Plan plan = Plan::create(cpu(), {.program = backward, .shape = {300, 64}, .results = {{"dx", "dgamma"}}}).value();
  ASSERT_GT(plan.workspace_bytes(), 0u);
  const std::size_t room = plan.workspace_bytes() + 300 * 64 * sizeof(float);
  Workspace memory(room), own(room);
  Floats dy = sampled(300 * 64, "dy"), x = sampled(300 * 64), gamma = sampled(64), rstd = sampled(300), dgamma(64);
  Args args = plan.args();
  args["dy"] = view(dy), args["x"] = view(x), args["gamma"] = view(gamma), args["rstd"] = view(rstd);
  args["dx"] = {.data = memory.span().data()}, args["dgamma"] = view(dgamma);
  expect_refused(plan.run(args, {}, memory.span()), Code::InvalidArgument, "the workspace and dx share memory");
  EXPECT_EQ(refusal(plan.run(args, {}, own.span())), "");
  args["dx"] = {.data = own.span().data()};  // now it lies where the workspace was right before
  expect_refused(plan.run(args, {}, own.span()), Code::InvalidArgument, "the workspace and dx share memory");
}

TEST(PlanMisuse, fault_45_const_data) {
  const Floats x = sampled(12), gamma = sampled(4, "gamma");
  Floats y(12), rstd(3);
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {3, 4}}).value();
  Args args = plan.args();
  args["x"] = {.data = x.data()}, args["gamma"] = {.data = gamma.data()};
  args["y"] = {.data = y.data()}, args["rstd"] = {.data = rstd.data()};
  EXPECT_EQ(refusal(plan.run(args)), "");
  EXPECT_TRUE(same_bits(y, by_reference(x, 3, 4).y));
  const Floats constant(12);
  args["y"] = {.data = constant.data()};
  expect_refused(plan.check(args), Code::InvalidArgument, "y: the view is of const data, and a result is written");
}

}  // namespace
}  // namespace trireme
