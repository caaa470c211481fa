// Plans: bits against the reference device, every refusal, threads. Layouts: plan_layout_test.cpp.
#include <cmath>
#include <thread>

#include "plan/plan_for_test.hpp"

namespace trireme {
namespace {

TEST(Plan, RunsWithTheReferencesBits) {
  Floats x = sampled(2 * 3 * 260), gamma = sampled(260, "gamma"), y(x.size()), rstd(6);
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {2, 3, 260}}).value();
  Args args = plan.args();
  args["x"] = view(x, {2, 3, 260}), args["gamma"] = view(gamma, {1, 1, 260});
  args["y"] = view(y), args["rstd"] = view(rstd, {2, 3, 1});
  EXPECT_EQ(refusal(plan.check(args)), "");
  plan.run(args).value();
  Normalised wanted = by_reference(x, 6, 260);
  EXPECT_TRUE(same_bits(y, wanted.y));
  EXPECT_TRUE(same_bits(rstd, wanted.rstd));
  EXPECT_EQ(plan.workspace_bytes(), 0u);
  EXPECT_EQ(plan.names(), (std::vector<std::string>{"x", "gamma", "y", "rstd"}));
  EXPECT_NE(plan.describe().find("6 rows of 260 columns"), std::string::npos) << plan.describe();
  EXPECT_EQ(plan.sku().types, "x=f32 gamma=f32 y=f32 rstd=f32");
  EXPECT_TRUE(plan.guarantee().across_batch);
  EXPECT_TRUE(plan.prepare());
}

// A sum into entries of each row's own adds no rows up.
TEST(Plan, SumsOverRowsAloneDependOnTheBatch) {
  for (const auto& [index, across_batch] : {std::pair("[i, j / 4]", true), std::pair("[i, (j / 2) % 3]", true),
                                            std::pair("[i / 2, j / 4]", false), std::pair("[j]", false)}) {
    const std::string text = std::string("p(x[i,j]) -> (y") + index + ")\n    y = colsum(x)\n";
    Plan plan = Plan::create(cpu(), {.program = RowProgram::parse(text).value(), .shape = {6, 24}}).value();
    EXPECT_EQ(plan.guarantee().across_batch, across_batch) << index;
  }
}

TEST(Plan, SeveralAxesMakeARowAndRankOneIsOneRow) {
  Floats x = sampled(4 * 6), y(24), z(24), gamma = sampled(24, "gamma");
  PlanOptions options{.program = rms_norm(), .shape = {4, 6}, .axes = last(2), .results = {{"y"}}};
  Plan plan = Plan::create(cpu(), options).value();
  Args args = plan.args();
  args["x"] = view(x), args["gamma"] = view(gamma, {4, 6}), args["y"] = view(y);
  plan.run(args).value();
  options.shape = {24}, options.axes = last(1);
  Plan flat = Plan::create(cpu(), options).value();
  Args flat_args = flat.args();
  flat_args["x"] = view(x), flat_args["gamma"] = view(gamma), flat_args["y"] = view(z);
  flat.run(flat_args).value();
  EXPECT_TRUE(same_bits(y, z));
  EXPECT_TRUE(same_bits(y, by_reference(x, 1, 24).y));
}

TEST(Plan, WhatNothingReadsMayBeLeftOut) {
  RowProgram backward = RowProgram::named("softmax").value().differentiate().value();  // reads y, not x
  Plan plan = Plan::create(cpu(), {.program = backward, .shape = {3, 33}}).value();
  Floats dy = sampled(99, "dy"), x = sampled(99), y = sampled(99, "y"), with(99), without(99);
  for (bool given : {true, false}) {
    Args args = plan.args();
    args["dy"] = view(dy), args["y"] = view(y), args["dx"] = view(given ? with : without);
    if (given) args["x"] = view(x);
    EXPECT_EQ(refusal(plan.run(args)), "");
  }
  EXPECT_TRUE(same_bits(with, without));
}

TEST(Plan, ThreadsGiveTheSameBits) {
  Floats x = sampled(37 * 300), gamma = sampled(300, "gamma");
  Normalised wanted = by_reference(x, 37, 300);
  auto in_order = [](void*, int count, ParallelFor::Body* body, void* context) {
    for (int k = count; k-- > 0;) body(context, k);
  };
  for (int threads : {1, 2, 5})
    for (bool lent : {false, true}) {
      PlanOptions options{.program = rms_norm(), .shape = {37, 300}, .threads = threads};
      if (lent) options.parallel_for.run = in_order;
      Plan plan = Plan::create(cpu(), options).value();
      Floats y(x.size()), rstd(37);
      Args args = plan.args();
      args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
      plan.run(args).value();
      EXPECT_TRUE(same_bits(y, wanted.y)) << threads;
    }
}

TEST(Plan, fault_01_ZeroRows) {
  RowProgram backward = rms_norm().differentiate().value();
  for (const Device& device : {cpu(), Device::reference()}) {
    Plan plan = Plan::create(device, {.program = backward, .shape = {0, 7}}).value();
    Floats gamma = sampled(7, "gamma"), dgamma(7, NAN);
    Args args = plan.args();
    args["gamma"] = view(gamma), args["dgamma"] = view(dgamma);
    Workspace workspace(plan.workspace_bytes());
    EXPECT_EQ(refusal(plan.run(args, {}, workspace.span())), "") << device.name();
    for (float value : dgamma) EXPECT_TRUE(value == 0 && !std::signbit(value)) << device.name();
    Plan forward = Plan::create(device, {.program = rms_norm(), .shape = {3, 0, 7}}).value();
    Args none = forward.args();
    none["gamma"] = view(gamma);
    EXPECT_EQ(refusal(forward.run(none)), "") << device.name();
  }
  expect_refused(Plan::create(cpu(), {.program = rms_norm(), .shape = {3, 0}}), Code::InvalidArgument, "no columns");
}

TEST(Plan, fault_29_MisuseIsRefused) {
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {4, 8}}).value();
  Floats x = sampled(32), gamma = sampled(8, "gamma"), y(32), rstd(4);
  auto refused = [&](Code code, const std::string& part, auto&& change) {
    Args args = plan.args();
    args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
    ASSERT_EQ(refusal(plan.check(args)), "");
    change(args);
    expect_refused(plan.run(args), code, part);
  };
  using enum Code;
  refused(InvalidArgument, "did you mean 'rstd'?", [&](Args& args) { args["rstdd"] = view(rstd); });
  refused(InvalidArgument, "rstd: a null pointer for a result", [](Args& args) { args["rstd"] = View{}; });
  refused(InvalidArgument, "x: a null pointer for an operand", [](Args& args) { args["x"] = View{}; });
  refused(InvalidArgument, "the view is f64, the plan was made for f32", [&](Args& args) {
    args["x"] = View{x.data(), Type::F64};
  });
  refused(InvalidArgument, "the shape 8x4, expected 4x8", [&](Args& args) { args["x"] = view(x, {8, 4}); });
  refused(InvalidArgument, "expected 8 or 1x8", [&](Args& args) { args["gamma"] = view(gamma, {2, 4}); });
  refused(InvalidArgument, "at most 8 axes", [&](Args& args) { args["x"] = view(x, {1, 1, 1, 1, 1, 1, 1, 4, 8}); });
  refused(InvalidArgument, "are not those of", [&](Args& args) { args["x"] = view(x, {4, 8}, {1}); });
  refused(InvalidArgument, "multiple of the 4 bytes",
          [&](Args& args) { args["x"] = View{reinterpret_cast<char*>(x.data()) + 1}; });
  refused(InvalidArgument, "beyond 2^61", [&](Args& args) { args["x"] = view(x, {4, 8}, {INT64_MAX, 1}); });
  refused(BufferTooSmall, "128 bytes are needed, and the buffer has 124", [&](Args& args) {
    args["x"] = View{x.data(), Type::F32, {}, {}, 124};
  });
  refused(InvalidArgument, "two results share memory", [&](Args& args) { args["rstd"] = View{y.data()}; });
  refused(InvalidArgument, "another plan", [&](Args& args) {
    args = Plan::create(cpu(), {.program = rms_norm(), .shape = {4, 8}}).value().args();
  });
  refused(InvalidArgument, "moved away", [&](Args& args) { Args taken = std::move(args); });
  refused(InvalidArgument, "problem line: rms_norm 4x8", [](Args& args) { args["x"] = View{}; });

  auto not_made = [](Code code, const std::string& part, const PlanOptions& options) {
    expect_refused(Plan::create(cpu(), options), code, part);
  };
  not_made(InvalidArgument, "needs a program", {.shape = {4, 8}});
  not_made(InvalidArgument, "1 to 8 axes", {.program = rms_norm()});
  not_made(InvalidArgument, "not the last 3", {.program = rms_norm(), .shape = {4, 8}, .axes = last(3)});
  not_made(InvalidArgument, "negative extent", {.program = rms_norm(), .shape = {-4, 8}});
  not_made(InvalidArgument, "has no 'z'", {.program = rms_norm(), .shape = {4, 8}, .types = {{"z", Type::F32}}});
  not_made(InvalidArgument, "did you mean 'rstd'", {.program = rms_norm(), .shape = {4, 8}, .results = {{"rstdd"}}});
  not_made(InvalidArgument, "no result is wanted",
           {.program = rms_norm(), .shape = {4, 8}, .results = std::set<std::string>{}});
  not_made(InvalidArgument, "absent and has no default", {.program = rms_norm(), .shape = {4, 8}, .absent = {"x"}});
  if (has_kernels())
    not_made(Unsupported, "allowed",
             {.program = rms_norm().differentiate().value(), .shape = {4, 8}, .max_workspace_bytes = 16});
  expect_refused(Device::named("cpu:avx22"), NoDevice, "did you mean 'cpu:avx2'");
  expect_refused(RowProgram::named("rms_nrom"), InvalidArgument, "did you mean 'rms_norm'");

  Plan backward = Plan::create(cpu(), {.program = rms_norm().differentiate().value(), .shape = {4, 8}}).value();
  Args args = backward.args();
  std::vector<Floats> memory;
  for (const std::string& name : backward.names()) {
    memory.push_back(sampled(32, name.c_str()));
    args[name] = View{memory.back().data()};
  }
  if (has_kernels()) expect_refused(backward.run(args), BufferTooSmall, "a workspace of");
}

TEST(Plan, OneIsSharedByThreads) {
  Floats x = sampled(40 * 300), gamma = sampled(300, "gamma");
  Plan plan = Plan::create(cpu(), {.program = rms_norm(), .shape = {40, 300}}).value();
  Floats wanted = by_reference(x, 40, 300).y;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      Floats y(x.size()), rstd(40);
      Args args = plan.args();
      args["x"] = view(x), args["gamma"] = view(gamma), args["y"] = view(y), args["rstd"] = view(rstd);
      for (int k = 0; k < 50; ++k) plan.run(args).value();
      EXPECT_TRUE(same_bits(y, wanted));
    });
  for (std::thread& thread : threads) thread.join();
}

// Every operator, both directions, through a plan: the bits of the reference device.
TEST(Plan, EveryOperatorOnCpu) {
  for (const std::string& name : RowProgram::names())
    for (bool backward : {false, true}) {
      RowProgram program = RowProgram::named(name).value();
      if (backward) program = program.differentiate().value();
      PlanOptions options{.program = program, .shape = {6, 34}};
      for (const RowProgram::Parameter& each : program.signature())
        if (each.kind == RowProgram::Kind::Constant && !each.optional) options.constants[each.name] = 2;
      std::vector<std::vector<Floats>> results;
      for (const Device& device : {Device::reference(), cpu()}) {
        Result<Plan> plan = Plan::create(device, options);
        ASSERT_TRUE(plan) << refusal(plan);
        Args args = plan->args();
        std::vector<Floats> memory;
        for (std::size_t k = 0; k < plan->array_count(); ++k) {
          const Plan::Array array = plan->array(k);
          memory.push_back(sampled(2 * 6 * 34, array.name.c_str()));
          args[array.name] = View{memory.back().data(), array.type};  // of integers: any, also outside of tables
        }
        Workspace workspace(plan->workspace_bytes());
        Status status = plan->run(args, {}, workspace.span());
        ASSERT_TRUE(status) << refusal(status);
        results.push_back(std::move(memory));
      }
      for (std::size_t k = 0; k < results[0].size(); ++k)
        for (std::size_t e = 0; e < results[0][k].size(); ++e) {
          float a = results[0][k][e], b = results[1][k][e];
          ASSERT_TRUE(std::memcmp(&a, &b, 4) == 0 || (a != a && b != b)) << name << ' ' << backward << ' ' << k;
        }
    }
}

}  // namespace
}  // namespace trireme
